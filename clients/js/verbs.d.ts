// Written by scripts/clients.py from the daemon's route table.

import type * as t from "./types.js";

export interface Verbs {
  /** Find a session, or make one. */
  resolveSession(given?: t.Resolve): Promise<t.Session>;
  /** Sessions, last used first. */
  listSessions(given?: { archived?: boolean; before?: string; limit?: number; }): Promise<t.SessionPage>;
  /** What was said in sessions, by words and meaning. */
  searchSessions(given: { q: string; semantic?: boolean; limit?: number; }): Promise<t.SaidPage>;
  /** One session. */
  getSession(sessionId: string): Promise<t.Session>;
  /** Rename, archive, unarchive. */
  changeSession(sessionId: string, given?: t.SessionChange): Promise<t.Session>;
  /** Begin the conversation anew; the tape stays. */
  resetSession(sessionId: string): Promise<t.Session>;
  /** A new session that continues from an entry of this one. */
  branchSession(sessionId: string, given?: t.Branch): Promise<t.Session>;
  /** Entries of the tape behind a cursor. */
  listEntries(sessionId: string, given?: { after?: number; limit?: number; }): Promise<t.EntryPage>;
  /** Runs of a session, newest first. */
  listRuns(sessionId: string, given?: { before?: string; limit?: number; }): Promise<t.RunPage>;
  /** Submit an input; a run answers it. */
  submit(sessionId: string, given: t.Submission): Promise<t.Submitted>;
  /** Take effects back. */
  undo(sessionId: string, given?: t.Undo): Promise<t.Undone>;
  /** Lay a rule down, in plain words. */
  addRule(sessionId: string, given: t.NewRule): Promise<t.ShownRule>;
  /** The rules of a session. */
  listRules(sessionId: string): Promise<t.RuleList>;
  /** One run. */
  getRun(runId: string): Promise<t.RunRow>;
  /** End a run, in whatever state it is. */
  cancel(runId: string, given?: t.Cancel): Promise<t.RunRow>;
  /** STOP: end everything that runs or waits. */
  stop(): Promise<t.Stopped>;
  /** What waits for an answer, and what was answered. */
  listApprovals(given?: { pending?: "any" | "false" | "true"; before?: string; limit?: number; }): Promise<t.ApprovalPage>;
  /** One approval. */
  getApproval(approvalId: string): Promise<t.Approval>;
  /** Answer; the first answer wins. */
  answer(approvalId: string, given: t.Answer): Promise<t.Approval>;
  /** What was allowed more widely than once. */
  listGrants(): Promise<t.GrantList>;
  /** Take such a permission back. */
  removeGrant(approvalId: string): Promise<void>;
  /** What is remembered, newest first. */
  listMemory(given?: { state?: "active" | "all" | "forgotten" | "rejected" | "review" | "superseded"; before?: string; limit?: number; }): Promise<t.ItemPage>;
  /** Remember something. */
  addMemory(given: t.Adding): Promise<t.Item>;
  /** Search by words and meaning, with explained scores. */
  searchMemory(given: { text: string; session_id?: string; limit?: number; }): Promise<t.Searched>;
  /** Schedules, with their next times and what they may cost. */
  listSchedules(): Promise<t.ScheduleList>;
  /** What models were asked, and what it cost. */
  usage(given?: { by?: "call" | "day" | "hour" | "model" | "month" | "origin" | "principal" | "run" | "schedule" | "session" | "task"; since_ms?: number; until_ms?: number; session_id?: string; run_id?: string; schedule_id?: string; everybody?: boolean; limit?: number; }): Promise<t.UsageList>;
  /** Models that can be asked for. */
  listModels(): Promise<t.ModelList>;
  /** Tools the agent has. */
  listTools(): Promise<t.ToolList>;
  /** What the daemon is and does. */
  status(): Promise<t.Status>;
  /** Check every entry; names the first bad one. */
  verifyJournal(): Promise<t.Verified>;
}

export declare const VERBS: { [name in keyof Verbs]: [string, string] };
