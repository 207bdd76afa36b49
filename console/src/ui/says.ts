// What an entry of a tape is called, by its kind.
const SAYS: Record<string, string> = {
  "run.accepted": "Run queued", "run.started": "Run started", "run.resumed": "Run resumed", "run.waiting": "Waiting for provider", "run.clock_changed": "Clock changed",
  "run.completed": "Answer", "run.failed": "Run failed", "run.cancelled": "Run stopped", "input.received": "Message", "input.assembled": "Prompt sent",
  "route.planned": "Model selected", "model.replied": "Model reply", "model.failed": "Model call failed", "model.used": "Model call", "tool.proposed": "Tool call",
  "tool.decided": "Policy decision", "tool.started": "Tool started", "tool.finished": "Tool finished", "tool.undone": "Tool call undone",
  "tool.handed_over": "Calls sent to client", "answer.refused": "Reply rejected; model asked again", "plan.declared": "Plan declared", "approval.requested": "Approval requested", "approval.resolved": "Approval answered",
  "agent.spawned": "Subagent started", "agent.asked": "Subagent needs approval", "agent.answered": "Subagent approval answered", "session.created": "Session created",
  "session.restored": "Session rewound", "session.branched": "Session branched", "session.compacted": "Context compacted", "session.uncompacted": "Compaction undone",
  "session.reset": "Session reset", "session.changed": "Session updated", "session.pinned": "Entry pinned", "session.ruled": "Session rule changed",
  "memory.written": "Memory saved", "memory.removed": "Memory removed",
};

export function says(kind: string): string {
  return SAYS[kind] ?? kind;
}
