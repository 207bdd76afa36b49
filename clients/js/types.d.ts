// Written by scripts/clients.py from the daemon's schema. What has a default may be absent on the wire.

export interface AccessRefused {
  kind: "access.refused";
  address: string;
  attempts: number;
}

export interface AccessWidened {
  kind: "access.widened";
  token_id: string;
  address: string;
}

export interface Adding {
  text: string;
  kind: "constraint" | "decision" | "fact" | "preference" | "procedure";
  scope?: "channel" | "principal" | "session" | "workspace";
  source?: string;
  place?: number;
  confidence_bps?: number;
  valid_from_ms?: number;
  valid_until_ms?: number;
  ttl_ms?: number;
  pinned?: boolean;
  session_id?: string;
}

export interface AdminChanged {
  kind: "admin.changed";
  what: "budget" | "certificate" | "channel" | "config" | "daemon" | "journal" | "listening" | "mcp" | "notes" | "pairing" | "policy" | "schedule" | "secret" | "skill" | "task" | "token" | "worker";
  action: string;
  subject?: string;
  details?: { [name: string]: unknown };
}

export interface AgentAnswered {
  kind: "agent.answered";
  call_id: string;
  session_id: string;
  run_id: string;
  answer: ApprovalResolved;
}

export interface AgentAsked {
  kind: "agent.asked";
  call_id: string;
  session_id: string;
  run_id: string;
  request: ApprovalRequested;
}

export interface AgentEnd {
  session_id: string;
  run_id: string;
  seq: number;
  state: "cancelled" | "done" | "failed";
  turns?: number;
  calls?: number;
  active_ms?: number;
  input_tokens?: number;
  output_tokens?: number;
  cost_microusd?: number;
}

export interface AgentSpawned {
  kind: "agent.spawned";
  call_id: string;
  session_id: string;
  run_id: string;
  budgets: Budgets;
}

export interface Answer {
  decision: "again" | "allow" | "deny" | "expired" | "happened" | "skip" | "withdrawn";
  scope?: "always" | "once" | "session" | "timed";
  subject?: Subject | null;
  for_ms?: number;
  arguments?: { [name: string]: unknown } | null;
  reason?: string;
  seen?: string;
}

export interface AnswerRefused {
  kind: "answer.refused";
  turn: number;
  problem: string;
}

export interface Approval {
  approval_id: string;
  session_id: string;
  run_id: string;
  owner: string;
  origin: "api" | "channel" | "child" | "interactive" | "scheduled";
  requested_ms: number;
  expires_ms?: number;
  decision?: string;
  resolved_ms?: number;
  request: ApprovalRequested;
  resolution?: ApprovalResolved | null;
  resolved_by?: string;
  seq?: number;
}

export interface ApprovalPage {
  approvals: (Approval)[];
  next: string | null;
}

export interface ApprovalRequested {
  kind: "approval.requested";
  approval_id: string;
  call_id: string;
  tool: string;
  about: "budget" | "in_doubt" | "tool";
  preview: Preview;
  risk: "critical" | "high" | "low" | "medium";
  why: string;
  subjects?: (Subject)[];
  policies?: (string)[];
  label?: Label;
  expires_ms?: number;
  cost_microusd?: number;
  flow?: Flow | null;
  asker?: Asker | null;
  budget?: BudgetAsked | null;
}

export interface ApprovalResolved {
  kind: "approval.resolved";
  approval_id: string;
  call_id: string;
  decision: "again" | "allow" | "deny" | "expired" | "happened" | "skip" | "withdrawn";
  scope?: "always" | "once" | "session" | "timed";
  subject?: Subject | null;
  until_ms?: number;
  arguments?: { [name: string]: unknown } | null;
  reason?: string;
  surface?: string;
  preview?: Preview | null;
}

export interface Asker {
  task: string;
  depth: number;
  root: string;
}

export interface AssembledPart {
  source: string;
  tokens: number;
  label?: Label;
  note?: string;
}

export interface AtTrigger {
  on: "at";
  at_ms: number;
}

export interface Attaching {
  artifact: string;
  name?: string;
}

export interface Attachment {
  artifact: string;
  media_type: string;
  name?: string;
  size?: number;
  width?: number;
  height?: number;
  text?: string;
  text_artifact?: string | null;
  note?: string;
  label?: Label;
}

export interface Attestation {
  executor: string;
  tier: "A" | "B" | "C" | "none";
  policy_version: string;
  input_sha256: string;
  output_sha256: string;
  approval_id?: string | null;
}

export interface Bad {
  tape: string;
  seq: number;
  position: number;
  problem: string;
}

export interface Branch {
  at?: number | null;
  title?: string;
}

export interface Brought {
  source: string;
  seq?: number;
  tool?: string;
  tape?: string;
  untrusted?: boolean;
  private?: boolean;
}

export interface BudgetAsked {
  name: string;
  account: string;
  unit: "microusd" | "tokens";
  limit: number;
  spent: number;
  upto: number;
}

export interface Budgets {
  turns?: number;
  calls?: number;
  active_ms?: number;
  tokens?: number;
  microusd?: number;
}

export interface Call {
  id: string;
  tool: string;
  arguments: { [name: string]: unknown };
  native_id?: string;
  malformed?: string;
}

export interface Cancel {
  reason?: string;
}

export interface CandidateProposed {
  kind: "candidate.proposed";
  candidate_id: string;
  candidate_kind: string;
  content: string;
  confidence_bps: number;
  risk?: "critical" | "high" | "low" | "medium";
  evidence?: (number)[];
  owner?: string;
  session_id?: string;
  label?: Label;
  found_by?: string;
}

export interface CandidateSettled {
  kind: "candidate.settled";
  candidate_id: string;
  state: "accepted" | "applied" | "conflicted" | "pending_review" | "rejected" | "rolled_back" | "suppressed";
  reason?: string;
  automatic?: boolean;
  became?: string;
}

export interface Circumstances {
  now_ms: number;
  origin?: "api" | "channel" | "child" | "interactive" | "scheduled";
  label?: Label;
  capabilities?: ("browser" | "fs.read" | "fs.write" | "memory" | "message" | "network" | "process" | "secrets")[];
  source?: string;
  agent?: string;
  channel?: string;
  rules?: (SessionRule)[];
  exact?: boolean;
}

export interface ClientTool {
  name: string;
  description?: string;
  parameters?: { [name: string]: unknown };
}

export interface Commission {
  session_id: string;
  run_id: string;
  call_id: string;
  root: string;
  depth?: number;
  task?: string;
  tools?: (string)[] | null;
  label?: Label;
  serves?: "background" | "extraction" | "interactive" | "summary" | "vision" | null;
}

export interface CronTrigger {
  on: "cron";
  expression: string;
}

export interface Earlier {
  role: "assistant" | "tool" | "user";
  text: string;
}

export interface Entry {
  tape: string;
  seq: number;
  position: number;
  time_ms: number;
  run_id?: string;
  principal: string;
  kind: string;
  hash: string;
  event: RunAccepted | RunStarted | RunResumed | RunClockChanged | RunCompleted | RunFailed | RunCancelled | InputReceived | InputAssembled | RoutePlanned | ModelReplied | ModelFailed | ModelUsed | ToolProposed | ToolDecided | ToolStarted | ToolFinished | ToolHandedOver | AnswerRefused | ToolUndone | ApprovalRequested | ApprovalResolved | AgentSpawned | AgentAsked | AgentAnswered | SessionCreated | SessionReset | SessionBranched | SessionCompacted | SessionUncompacted | SessionPinned | SessionRestored | SessionRuled | SessionChanged | CandidateProposed | CandidateSettled | MemoryWritten | MemoryRemoved | MessageReceived | MessageRefused | ReplySent | ReplyAbandoned | IncidentOpened | IncidentTried | IncidentClosed | OwnerNotified | TaskFinished | AdminChanged | AccessRefused | AccessWidened | WorkerJoined | WorkerLeft | WorkerRefused | JournalArchived | JournalRestored | JournalCheckpointed;
}

export interface EntryPage {
  entries: (Entry)[];
  next: number | null;
}

export interface ErrorBody {
  error: Problem;
}

export interface EveryTrigger {
  on: "every";
  every_ms: number;
  from_ms?: number;
}

export interface FileChange {
  path: string;
  change: "created" | "deleted" | "modified" | "restored";
}

export interface FileTrigger {
  on: "file";
  path: string;
}

export interface Firing {
  schedule_id: string;
  due_ms: number;
  state: "cancelled" | "done" | "due" | "failed" | "missed" | "queued" | "skipped" | "started";
  run_id?: string;
  session_id?: string;
  note?: string;
  artifact?: string;
  updated_ms?: number;
}

export interface Flow {
  sources: (Brought)[];
  sinks?: (string)[];
  sends_private?: boolean;
}

export interface Found {
  item: Item;
  score: number;
  parts: ScoreParts;
}

export interface Given {
  instructions?: string;
  earlier?: (Earlier)[];
}

export interface Grant {
  approval_id: string;
  subject: Subject;
  principal: string;
  session_id?: string | null;
  until_ms?: number | null;
  seen?: Label;
}

export interface GrantList {
  grants: (Grant)[];
}

export interface HookTrigger {
  on: "webhook";
}

export interface IncidentClosed {
  kind: "incident.closed";
  incident_id: string;
  outcome: string;
}

export interface IncidentOpened {
  kind: "incident.opened";
  incident_id: string;
  domain: "approval" | "artifact" | "browser" | "connector" | "journal" | "resource" | "run" | "task" | "worker";
  severity: "critical" | "error" | "info" | "warning";
  summary: string;
  key?: string;
  fix?: string;
}

export interface IncidentTried {
  kind: "incident.tried";
  incident_id: string;
  remedy: string;
  result: "begun" | "done" | "failed";
  detail?: string;
  severity?: "critical" | "error" | "info" | "warning" | null;
}

export interface InputAssembled {
  kind: "input.assembled";
  turn: number;
  upto_seq: number;
  parts: (AssembledPart)[];
  tokens: number;
  budget: number;
  notes?: (string)[];
  from_seq?: number | null;
  digest?: string;
  surroundings?: string | null;
}

export interface InputReceived {
  kind: "input.received";
  submission_id: string;
  text: string;
  mode?: "collect" | "followup" | "interrupt" | "steer";
  attachments?: (Attachment)[];
  label?: Label;
  references?: (Reference)[];
  sender?: string;
  given?: Given | null;
}

export interface Item {
  memory_id: string;
  owner: string;
  text: string;
  kind: "constraint" | "decision" | "fact" | "preference" | "procedure";
  scope?: "channel" | "principal" | "session" | "workspace";
  scope_value?: string;
  label?: Label;
  provenance?: (number)[];
  source?: string;
  place?: number;
  confidence_bps?: number;
  valid_from_ms?: number;
  valid_until_ms?: number;
  expires_ms?: number;
  pinned?: boolean;
  state?: "active" | "forgotten" | "rejected" | "review" | "superseded";
  why?: string;
  origin?: "import" | "learned" | "tool" | "user";
  supersedes?: string;
  superseded_by?: string;
  created_ms?: number;
  updated_ms?: number;
  embedded?: boolean;
}

export interface ItemPage {
  items: (Item)[];
  next?: string;
}

export interface JournalArchived {
  kind: "journal.archived";
  segment: string;
  entries: number;
  bytes: number;
  tapes: (string)[];
}

export interface JournalCheckpointed {
  kind: "journal.checkpointed";
  size: number;
  root: string;
  note?: string;
}

export interface JournalRestored {
  kind: "journal.restored";
  segment: string;
  tape: string;
}

export interface Label {
  integrity?: "trusted" | "untrusted";
  confidentiality?: "private" | "public" | "secret";
  sources?: (string)[];
  private_sources?: (string)[];
}

export interface Limits {
  time_ms?: number;
  input_bytes?: number;
  output_bytes?: number;
}

export interface MemoryRemoved {
  kind: "memory.removed";
  memory_id: string;
  reason?: string;
}

export interface MemoryWritten {
  kind: "memory.written";
  memory_id: string;
  text?: string;
  memory_kind?: string;
  scope?: string;
  label?: Label;
  supersedes?: string;
  state?: string;
  pinned?: boolean;
  digest?: string;
}

export interface MessageReceived {
  kind: "message.received";
  message_id: string;
  connector: string;
  conversation: string;
  sender: string;
  text: string;
  label?: Label;
}

export interface MessageRefused {
  kind: "message.refused";
  message_id: string;
  reason: string;
}

export interface ModelDelta {
  kind: "model.delta";
  run_id: string;
  turn: number;
  text?: string;
  reasoning?: string;
  call?: string;
  whole?: boolean;
}

export interface ModelFailed {
  kind: "model.failed";
  turn: number;
  provider: string;
  model: string;
  failure: "auth" | "bad_request" | "content_blocked" | "context_too_long" | "interrupted" | "malformed" | "network" | "overloaded" | "permission" | "quota" | "rate_limited" | "timeout";
  message: string;
  will_retry: boolean;
  attempt?: number;
  wait_ms?: number;
  text?: string;
  reasoning?: string;
  usage?: Usage;
  cost_microusd?: number;
  priced?: "" | "free" | "list" | "own" | "unknown";
  task?: "background" | "extraction" | "interactive" | "summary" | "vision";
  estimated?: boolean;
  first_delta_ms?: number;
  duration_ms?: number;
}

export interface ModelInfo {
  name: string;
  provider: string;
  model: string;
  context_tokens: number;
  default: boolean;
  healthy: boolean;
}

export interface ModelList {
  models: (ModelInfo)[];
  data: (OpenAIModel)[];
  object?: "list";
}

export interface ModelReplied {
  kind: "model.replied";
  turn: number;
  provider: string;
  model: string;
  text?: string;
  reasoning?: string;
  calls?: (Call)[];
  stop?: "content_filter" | "end" | "interrupted" | "length" | "tool_calls";
  usage?: Usage;
  cost_microusd?: number;
  priced?: "" | "free" | "list" | "own" | "unknown";
  task?: "background" | "extraction" | "interactive" | "summary" | "vision";
  estimated?: boolean;
  first_delta_ms?: number;
  duration_ms?: number;
  native?: Native | null;
}

export interface ModelUsed {
  kind: "model.used";
  provider: string;
  model: string;
  task: "background" | "extraction" | "interactive" | "summary" | "vision";
  purpose?: string;
  usage?: Usage;
  cost_microusd?: number;
  priced?: "" | "free" | "list" | "own" | "unknown";
  estimated?: boolean;
  first_delta_ms?: number;
  duration_ms?: number;
}

export interface Native {
  dialect: string;
  items: (unknown)[];
}

export interface NewRule {
  words: string;
}

export interface NotUndone {
  call_id: string;
  tool: string;
  why: string;
}

export interface Nothing {}

export interface OpenAIError {
  error: OpenAIProblem;
}

export interface OpenAIModel {
  id: string;
  created: number;
  owned_by: string;
  object?: "model";
}

export interface OpenAIProblem {
  code: string;
  message: string;
  retryable: boolean;
  details: { [name: string]: unknown };
  type: string;
  param?: string | null;
}

export interface OwnerNotified {
  kind: "owner.notified";
  notice_id: string;
  about: "approval" | "budget" | "channel" | "daemon" | "incident" | "learning" | "notes" | "schedule";
  key: string;
  text: string;
  link?: string;
  to?: string;
}

export interface PassedOver {
  model: string;
  why: string;
}

export interface Point {
  kind: "constraint" | "course" | "decision" | "done" | "fact" | "question";
  text: string;
  seq?: number;
  times?: number;
}

export interface PolicyState {
  version: string;
  preset: string;
}

export interface Preview {
  kind: "command" | "diff" | "request" | "text";
  title: string;
  body?: string;
  length?: number;
  digest?: string;
}

export interface Problem {
  code: string;
  message: string;
  retryable: boolean;
  details: { [name: string]: unknown };
}

export interface Quiet {
  from: string;
  to: string;
  then?: "later" | "skip";
}

export interface Reference {
  kind: "diff" | "file" | "folder" | "memory" | "run" | "staged" | "url";
  target?: string;
  label?: Label;
  size?: number;
  unit?: "bytes" | "characters" | "files";
  truncated?: boolean;
  text?: string;
  artifact?: string | null;
  note?: string;
}

export interface ReplyAbandoned {
  kind: "reply.abandoned";
  message_id: string;
  reason: string;
}

export interface ReplySent {
  kind: "reply.sent";
  message_id: string;
  native_id?: string;
  possibly_duplicated?: boolean;
}

export interface Resolve {
  session_id?: string;
  key?: string;
  label?: string;
  title?: string;
  workspace?: string;
  device?: string;
  channel?: string;
  must_exist?: boolean;
}

export interface RoutePlanned {
  kind: "route.planned";
  provider: string;
  model: string;
  reason: string;
  fallbacks?: (string)[];
  task?: "background" | "extraction" | "interactive" | "summary" | "vision";
  reasons?: (string)[];
  passed_over?: (PassedOver)[];
  rule?: string;
  expected_input_tokens?: number;
  expected_output_tokens?: number;
  expected_microusd?: number | null;
}

export interface RuleList {
  rules: (ShownRule)[];
}

export interface RunAccepted {
  kind: "run.accepted";
  origin?: "api" | "channel" | "child" | "interactive" | "scheduled";
  model?: string;
  budgets?: Budgets;
  parent_run_id?: string | null;
  forked_run_id?: string | null;
  policy?: string;
  commission?: Commission | null;
  schedule_id?: string;
  offered?: (ClientTool)[];
  wanted?: Wanted | null;
}

export interface RunCancelled {
  kind: "run.cancelled";
  reason?: string;
}

export interface RunClockChanged {
  kind: "run.clock_changed";
  active_ms: number;
  moved_ms: number;
  slept_ms?: number;
}

export interface RunCompleted {
  kind: "run.completed";
  text: string;
}

export interface RunFailed {
  kind: "run.failed";
  reason: string;
  message: string;
}

export interface RunPage {
  runs: (RunRow)[];
  next: string | null;
}

export interface RunResumed {
  kind: "run.resumed";
  after: "approval" | "budget" | "child" | "client" | "crash" | "in_doubt" | "paused";
  node?: string;
  wanted?: Wanted | null;
}

export interface RunRow {
  run_id: string;
  session_id: string;
  principal: string;
  origin: "api" | "channel" | "child" | "interactive" | "scheduled";
  state: "accepted" | "cancelled" | "done" | "failed" | "in_progress" | "waiting";
  reason?: string;
  created_ms: number;
  started_ms?: number;
  ended_ms?: number;
  heartbeat_ms?: number;
  recorded?: boolean;
}

export interface RunStarted {
  kind: "run.started";
  node?: string;
}

export interface Said {
  session_id: string;
  title: string;
  seq: number;
  time_ms: number;
  speaker: string;
  snippet: string;
  score: number;
  parts: ScoreParts;
  label: Label;
  run_id: string;
}

export interface SaidPage {
  found: (Said)[];
  words_only?: string;
  not_searched?: number;
}

export interface Schedule {
  schedule_id: string;
  owner: string;
  name: string;
  text: string;
  trigger: CronTrigger | EveryTrigger | AtTrigger | FileTrigger | HookTrigger;
  zone?: string;
  overlap?: "queue" | "replace" | "skip";
  missed?: "catch_up" | "skip";
  quiet?: Quiet | null;
  scopes?: (Subject)[];
  ask?: "deny" | "wait";
  model?: string;
  workspace?: string;
  fresh?: boolean;
  label?: Label;
  state?: "active" | "done" | "paused";
  next_ms?: number;
  created_ms?: number;
  updated_ms?: number;
}

export interface ScheduleForecast {
  firings_a_month: number;
  runs?: number;
  like?: number;
  tokens_a_run?: number;
  cost_microusd_a_run?: number;
  cost_microusd_a_month?: number;
}

export interface ScheduleList {
  schedules: (ShownSchedule)[];
}

export interface Scope {
  paths?: (string)[];
  workspace?: string;
  program?: string;
  command?: string;
  hosts?: (string)[];
  recipients?: (string)[];
  secrets?: (string)[];
  capabilities?: ("browser" | "fs.read" | "fs.write" | "memory" | "message" | "network" | "process" | "secrets")[];
  harmless?: boolean;
  destructive?: boolean;
}

export interface ScoreParts {
  words: number;
  meaning: number;
  own: number;
  neighbour: number;
  recency: number;
  confidence: number;
}

export interface Searched {
  found: (Found)[];
  threshold: number;
  words_only?: string;
}

export interface Session {
  session_id: string;
  key?: string | null;
  label?: string;
  title?: string;
  owner: string;
  device?: string;
  channel?: string;
  workspace?: string;
  created_ms: number;
  updated_ms: number;
  archived?: boolean;
  parent_id?: string;
  parent_seq?: number;
  fold_from?: number;
  parent_run_id?: string;
  segment_id?: string;
  kept?: boolean;
  head_seq?: number;
  active?: string;
}

export interface SessionBranched {
  kind: "session.branched";
  parent: string;
  parent_seq: number;
  child: string;
}

export interface SessionChange {
  title?: string | null;
  archived?: boolean | null;
  kept?: boolean | null;
}

export interface SessionChanged {
  kind: "session.changed";
  title?: string | null;
  archived?: boolean | null;
  kept?: boolean | null;
}

export interface SessionCompacted {
  kind: "session.compacted";
  summary: string;
  upto_seq: number;
  strategy?: string;
  tokens_before?: number;
  tokens_after?: number;
  label?: Label;
  from_seq?: number;
  records?: number;
  turns?: number;
  points?: (Point)[];
  pins?: (number)[];
  kept_from?: number;
  checkpoint?: number;
  automatic?: boolean;
  written_by?: "extractive" | "model";
  fallback?: string;
  provider?: string;
  model?: string;
  usage?: Usage;
  cost_microusd?: number;
  priced?: "" | "free" | "list" | "own" | "unknown";
  estimated?: boolean;
  duration_ms?: number;
}

export interface SessionCreated {
  kind: "session.created";
  owner: string;
  key?: string;
  label?: string;
  title?: string;
  device?: string;
  channel?: string;
  workspace?: string;
  parent_run_id?: string | null;
}

export interface SessionPage {
  sessions: (Session)[];
  next: string | null;
}

export interface SessionPinned {
  kind: "session.pinned";
  accepted_seq: number;
  removed?: boolean;
}

export interface SessionReset {
  kind: "session.reset";
}

export interface SessionRestored {
  kind: "session.restored";
  to_seq: number;
  changes?: (FileChange)[];
  conversation?: boolean;
  files?: boolean;
  left?: (string)[];
}

export interface SessionRule {
  rule_id: string;
  words: string;
}

export interface SessionRuled {
  kind: "session.ruled";
  rule_id: string;
  words: string;
  removed?: boolean;
}

export interface SessionUncompacted {
  kind: "session.uncompacted";
  compactions: (number)[];
}

export interface Shadow {
  verdict: "allow" | "ask" | "deny";
  reason: string;
  policies?: (string)[];
  policy_version?: string;
}

export interface ShownRule {
  rule_id: string;
  words: string;
  means: string;
  cedar: string;
  created_ms: number;
}

export interface ShownSchedule {
  schedule: Schedule;
  when: string;
  upcoming?: (number)[];
  upcoming_shown?: (string)[];
  forecast?: ScheduleForecast | null;
  firings?: (Firing)[];
  secret?: string;
}

export interface StateChanged {
  kind: "state.changed";
  what: ("certificates" | "channels" | "incidents" | "learning" | "schedules" | "settings" | "tasks" | "tokens" | "workers")[];
}

export interface Status {
  version: string;
  url: string;
  home: string;
  workspace: string;
  models: (ModelInfo)[];
  policy: PolicyState;
  tools: (string)[];
  runs_working: number;
  watchers: number;
  entries: number;
  incidents: number;
  unread: number;
  notes: (string)[];
  started_ms: number;
  uptime_ms: number;
}

export interface Stopped {
  cancelled: (string)[];
  recorded?: boolean;
}

export interface Subject {
  tool: string;
  kind: "command" | "host" | "path_prefix" | "program" | "recipient" | "tool";
  value?: string;
}

export interface Submission {
  text: string;
  run_id?: string;
  mode?: "collect" | "followup" | "interrupt" | "steer";
  model?: string;
  attended?: boolean;
  attachments?: (Attaching)[];
}

export interface Submitted {
  run_id: string;
  session_id: string;
  submission_id: string;
  state: "accepted" | "cancelled" | "done" | "failed" | "in_progress" | "waiting";
  outcome: "joined" | "queued" | "repeated" | "started";
  seq: number;
}

export interface TaskFinished {
  kind: "task.finished";
  task_id: string;
  task_kind: string;
  outcome: "cancelled" | "done" | "expired" | "failed";
  message?: string;
}

export interface ToolDecided {
  kind: "tool.decided";
  call_id: string;
  verdict: "allow" | "ask" | "deny";
  reason: string;
  by?: "catalogue" | "client" | "grant" | "hard_rule" | "policy" | "rule";
  policies?: (string)[];
  policy_version?: string;
  shadow?: Shadow | null;
}

export interface ToolFinished {
  kind: "tool.finished";
  call_id: string;
  outcome: "cancelled" | "denied" | "error" | "interrupted" | "ok" | "skipped" | "timeout" | "unknown";
  text?: string;
  data?: unknown;
  images?: (Attachment)[];
  artifact?: string | null;
  size?: number;
  duration_ms?: number;
  changes?: (FileChange)[];
  label?: Label;
  attestation?: Attestation | null;
  agent?: AgentEnd | null;
}

export interface ToolHandedOver {
  kind: "tool.handed_over";
  calls: (string)[];
}

export interface ToolList {
  tools: (ToolSpec)[];
}

export interface ToolProgress {
  kind: "tool.progress";
  run_id: string;
  call_id: string;
  text: string;
}

export interface ToolProposed {
  kind: "tool.proposed";
  call_id: string;
  tool: string;
  arguments: { [name: string]: unknown };
  effect?: "idempotent" | "once" | "pure" | "reversible";
  scope?: Scope;
  asked?: Circumstances | null;
}

export interface ToolSpec {
  name: string;
  description: string;
  parameters: { [name: string]: unknown };
  effect: "idempotent" | "once" | "pure" | "reversible";
  capabilities?: ("browser" | "fs.read" | "fs.write" | "memory" | "message" | "network" | "process" | "secrets")[];
  limits?: Limits;
  tier?: "A" | "B" | "C" | "none";
  source?: string;
  yields?: Label;
}

export interface ToolStarted {
  kind: "tool.started";
  call_id: string;
  key: string;
  attempt?: number;
}

export interface ToolUndone {
  kind: "tool.undone";
  call_id: string;
  changes: (FileChange)[];
  tool?: string;
  why?: "settled" | "undo";
}

export interface Undo {
  call_id?: string;
  run_id?: string;
  dry_run?: boolean;
  force?: boolean;
}

export interface Undone {
  calls: (string)[];
  changes: (FileChange)[];
  dry_run?: boolean;
  diff?: string;
  conflicts?: (string)[];
  left?: (NotUndone)[];
}

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
}

export interface UsageList {
  usage: (UsageRow)[];
  total: UsageRow;
}

export interface UsageRow {
  group: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost_microusd: number;
  duration_ms: number;
  first_delta_ms: number;
  unpriced?: number;
  slowest_ms?: number;
  from_ms?: number;
  until_ms?: number;
  estimated?: number;
}

export interface Verified {
  ok: boolean;
  entries: number;
  tapes: number;
  bad: Bad | null;
  pages: (string)[];
  guards: (string)[];
}

export interface Wanted {
  form?: "object" | "schema" | "text";
  name?: string;
  schema?: { [name: string]: unknown };
  strict?: boolean;
  call?: string;
}

export interface WorkerJoined {
  kind: "worker.joined";
  worker: string;
  version: string;
  platform?: string;
  tier?: "A" | "B" | "C" | "none";
  tools?: (string)[];
}

export interface WorkerLeft {
  kind: "worker.left";
  worker: string;
  why: "closed" | "lost" | "replaced" | "revoked";
  calls?: (string)[];
}

export interface WorkerRefused {
  kind: "worker.refused";
  why: "certificate" | "code" | "double" | "late_result" | "message" | "not_its_call" | "revoked" | "version";
  worker?: string;
  address?: string;
  call_id?: string | null;
  detail?: string;
  times?: number;
}

export type AnyEvent = RunAccepted | RunStarted | RunResumed | RunClockChanged | RunCompleted | RunFailed | RunCancelled | InputReceived | InputAssembled | RoutePlanned | ModelReplied | ModelFailed | ModelUsed | ToolProposed | ToolDecided | ToolStarted | ToolFinished | ToolHandedOver | AnswerRefused | ToolUndone | ApprovalRequested | ApprovalResolved | AgentSpawned | AgentAsked | AgentAnswered | SessionCreated | SessionReset | SessionBranched | SessionCompacted | SessionUncompacted | SessionPinned | SessionRestored | SessionRuled | SessionChanged | CandidateProposed | CandidateSettled | MemoryWritten | MemoryRemoved | MessageReceived | MessageRefused | ReplySent | ReplyAbandoned | IncidentOpened | IncidentTried | IncidentClosed | OwnerNotified | TaskFinished | AdminChanged | AccessRefused | AccessWidened | WorkerJoined | WorkerLeft | WorkerRefused | JournalArchived | JournalRestored | JournalCheckpointed;

export type LiveEvent = ModelDelta | ToolProgress | StateChanged;
