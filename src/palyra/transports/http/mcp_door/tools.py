"""Every tool of the MCP server, in one table."""

from palyra.transports.http.mcp_door import asking, looking
from palyra.transports.http.mcp_door.tool import Tool

_SESSION = "/v1/sessions/{session_id}"

TOOLS = (
    Tool(name="ask", title="Ask the agent", takes=asking.Ask, streams=asking.ask, read_only=False, like=f"POST {_SESSION}/messages",
         description="Give the agent a task or a question and get its answer. It works with its own tools under its owner's "
         "policies, and may wait until a person approves something; progress says so. To go on, name the answer's session_id."),
    Tool(name="run", title="How a run stands", takes=asking.Run, streams=asking.run, like="GET /v1/runs/{run_id}",
         description="The state of a run, and its answer once it is done. With wait_s, waits for it."),
    Tool(name="run_cancel", title="Cancel a run", takes=asking.Cancel, gives=asking.cancel, read_only=False,
         like="POST /v1/runs/{run_id}/cancel", description="End a run, in whatever state it is."),
    Tool(name="sessions_list", title="List conversations", takes=looking.Sessions, gives=looking.sessions_list,
         like="GET /v1/sessions", description="The conversations with the agent, last used first."),
    Tool(name="session_read", title="Read a conversation", takes=looking.Session, gives=looking.session_read,
         like=f"GET {_SESSION}/entries", description="What was said and done in a conversation, in order, a page at a time. What "
         "comes from outside the daemon has a label that says so."),
    Tool(name="sessions_search", title="Search conversations", takes=looking.Search, gives=looking.sessions_search,
         like="GET /v1/sessions/search", description="What was said in earlier conversations, by words and by meaning."),
    Tool(name="approvals_list", title="List approvals", takes=looking.Approvals, gives=looking.approvals_list,
         like="GET /v1/approvals", description="What the agent wants to do and waits for a yes for, or what was answered."),
    Tool(name="approval_answer", title="Answer an approval", takes=looking.AnswerApproval, gives=looking.approval_answer,
         read_only=False, like="POST /v1/approvals/{approval_id}/answer", description="Answer an approval, once. It counts only "
         "where one of the owner's policies lets this program answer; ask the person otherwise."),
    Tool(name="memory_search", title="Search memory", takes=looking.MemorySearch, gives=looking.memory_search,
         like="GET /v1/memory/search", description="What the agent remembers, by words and by meaning, best first."),
    Tool(name="memory_remember", title="Remember something", takes=looking.Remember, gives=looking.memory_remember,
         read_only=False, like="POST /v1/memory", description="Suggest something to remember. It is used once the owner has "
         "looked at it."),
    Tool(name="journal_search", title="Search the journal", takes=looking.JournalSearch, gives=looking.journal_search,
         like="GET /v1/events", description="Entries of the append-only history of your own conversations, in order."),
    Tool(name="journal_verify", title="Verify the journal", takes=looking.Verify, gives=looking.journal_verify,
         like="GET /v1/journal/verify", description="Check the whole history's hash chain; names the first entry that is wrong."),
)  # fmt: skip
