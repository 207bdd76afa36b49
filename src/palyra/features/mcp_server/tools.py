"""Every tool of the MCP server, in one table."""

from palyra.features.mcp_server import ask_tool, read_tools
from palyra.features.mcp_server.tool import ServedTool

_SESSION = "/v1/sessions/{session_id}"

TOOLS = (
    ServedTool(
        name="ask",
        title="Ask the agent",
        takes=ask_tool.AskArguments,
        streams=ask_tool.ask,
        read_only=False,
        like=f"POST {_SESSION}/messages",
        description=(
            "Give the agent a task or a question and get its answer. It works with its own tools"
            " under its owner's policies, and may wait until a person approves something; progress"
            " says so. To go on, name the answer's session_id."
        ),
    ),
    ServedTool(
        name="run",
        title="How a run stands",
        takes=ask_tool.AwaitRunArguments,
        streams=ask_tool.run,
        like="GET /v1/runs/{run_id}",
        description=(
            "The state of a run, and its answer once it is done. With wait_s, waits for it."
        ),
    ),
    ServedTool(
        name="run_cancel",
        title="Cancel a run",
        takes=ask_tool.CancelRunArguments,
        gives=ask_tool.cancel,
        read_only=False,
        like="POST /v1/runs/{run_id}/cancel",
        description="End a run, in whatever state it is.",
    ),
    ServedTool(
        name="sessions_list",
        title="List conversations",
        takes=read_tools.SessionsArguments,
        gives=read_tools.sessions_list,
        like="GET /v1/sessions",
        description="The conversations with the agent, last used first.",
    ),
    ServedTool(
        name="session_read",
        title="Read a conversation",
        takes=read_tools.SessionArguments,
        gives=read_tools.session_read,
        like=f"GET {_SESSION}/entries",
        description=(
            "What was said and done in a conversation, in order, a page at a time. What "
            "comes from outside the daemon has a label that says so."
        ),
    ),
    ServedTool(
        name="sessions_search",
        title="Search conversations",
        takes=read_tools.SearchSessionsArguments,
        gives=read_tools.sessions_search,
        like="GET /v1/sessions/search",
        description="What was said in earlier conversations, by words and by meaning.",
    ),
    ServedTool(
        name="approvals_list",
        title="List approvals",
        takes=read_tools.ApprovalsArguments,
        gives=read_tools.approvals_list,
        like="GET /v1/approvals",
        description="What the agent wants to do and waits for a yes for, or what was answered.",
    ),
    ServedTool(
        name="approval_answer",
        title="Answer an approval",
        takes=read_tools.AnswerApprovalArguments,
        gives=read_tools.approval_answer,
        read_only=False,
        like="POST /v1/approvals/{approval_id}/answer",
        description=(
            "Answer an approval, once. It counts only "
            "where one of the owner's policies lets this program answer; ask the person otherwise."
        ),
    ),
    ServedTool(
        name="memory_search",
        title="Search memory",
        takes=read_tools.MemorySearchArguments,
        gives=read_tools.memory_search,
        like="GET /v1/memory/search",
        description="What the agent remembers, by words and by meaning, best first.",
    ),
    ServedTool(
        name="memory_remember",
        title="Remember something",
        takes=read_tools.Remember,
        gives=read_tools.memory_remember,
        read_only=False,
        like="POST /v1/memory",
        description="Suggest something to remember. It is used once the owner has looked at it.",
    ),
    ServedTool(
        name="journal_search",
        title="Search the journal",
        takes=read_tools.JournalSearch,
        gives=read_tools.journal_search,
        like="GET /v1/events",
        description="Entries of the append-only history of your own conversations, in order.",
    ),
    ServedTool(
        name="journal_verify",
        title="Verify the journal",
        takes=read_tools.Verify,
        gives=read_tools.journal_verify,
        like="GET /v1/journal/verify",
        description="Check the whole history's hash chain; names the first entry that is wrong.",
    ),
)
