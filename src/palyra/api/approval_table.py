"""The routes about approvals and grants."""

from typing import Any

from palyra.agent.approval_groups import AnsweredGroup, GroupAnswer
from palyra.agent.approval_steps import Answer as ApprovalAnswer
from palyra.agent.approvals import ApprovalDraft, ApprovalPreview
from palyra.agent.grant_rates import PastCalls
from palyra.api import runs
from palyra.api.routes import Gives, Route, json_of
from palyra.store.approvals import Approval

ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/approvals",
        summary="pending approvals, and answered ones",
        handler=runs.listing,
        query=runs.ApprovalsQuery,
        gives=json_of(runs.ApprovalPage),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/approvals/{approval_id}",
        summary="one approval",
        handler=runs.approval,
        gives=json_of(Approval),
    ),
    Route(
        method="POST",
        path="/v1/approvals/{approval_id}/preview",
        summary="all of what a pending call would do, as proposed or with edited arguments",
        handler=runs.preview,
        scope="operator",
        body=ApprovalDraft,
        gives=json_of(ApprovalPreview),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/approvals/{approval_id}/answer",
        summary="answer; the first answer wins",
        handler=runs.answer,
        scope="operator",
        body=ApprovalAnswer,
        gives=json_of(Approval),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/approvals/{approval_id}/past",
        summary="what a wider approval would have let run in the recorded past",
        handler=runs.past,
        query=runs.PastQuery,
        gives=json_of(PastCalls),
    ),
    Route(
        method="GET",
        path="/v1/approvals/{approval_id}/group",
        summary="the pending lines of the question that an approval belongs to",
        handler=runs.group,
        gives=json_of(runs.ApprovalGroup),
    ),
    Route(
        method="POST",
        path="/v1/approvals/{approval_id}/group/answer",
        summary="answer all lines of a question together, each allowed or denied",
        handler=runs.answer_group,
        scope="operator",
        body=GroupAnswer,
        gives=json_of(AnsweredGroup),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/grants",
        summary="what was allowed more widely than once",
        handler=runs.grants,
        gives=json_of(runs.GrantList),
    ),
    Route(
        method="DELETE",
        path="/v1/grants/{approval_id}",
        summary="take such a permission back",
        handler=runs.remove_grant,
        scope="operator",
        gives=(Gives(204),),
    ),
)
