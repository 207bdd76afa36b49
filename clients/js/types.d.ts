// Written by scripts/clients.py from the daemon's schema. What has a default may be absent on the wire.

export interface Accept {
  fingerprint: string;
  uses?: { [name: string]: ToolUse };
}

export interface AcceptNote {
  workspace: string;
  file: string;
  sha256: string;
}

export interface Accepting {
  text?: string;
}

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
  kind?: "constraint" | "decision" | "fact" | "preference" | "procedure";
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

export interface Agent {
  session_id: string;
  run_id: string;
  parent_session_id: string;
  parent_run_id: string;
  call_id: string;
  depth: number;
  task: string;
  state: "accepted" | "cancelled" | "done" | "failed" | "in_progress" | "waiting";
  reason?: string;
  created_ms: number;
  ended_ms?: number;
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

export interface Agents {
  agents: (Agent)[];
}

export interface Allow {
  type: "allow";
  reason: string;
  policies?: (string)[];
}

export interface AnchorReport {
  name: string;
  size: number;
  problem?: string;
}

export interface Answer {
  decision: "again" | "allow" | "deny" | "expired" | "happened" | "skip" | "withdrawn";
  scope?: "always" | "once" | "session" | "timed";
  subject?: Subject | null;
  for_ms?: number;
  rate?: string;
  upto?: string;
  arguments?: { [name: string]: unknown } | null;
  reason?: string;
  seen?: string;
}

export interface AnswerRefused {
  kind: "answer.refused";
  turn: number;
  problem: string;
  flaw?: "arguments" | "described" | "empty" | "form" | "loop" | "repetition" | "stray_call";
}

export interface AnsweredGroup {
  approvals?: (Approval)[];
  problems?: (LineProblem)[];
}

export interface ApiConversation {
  id: string;
  created_at: number;
  metadata?: { [name: string]: string };
  object?: "conversation";
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

export interface ApprovalDraft {
  arguments?: { [name: string]: unknown } | null;
}

export interface ApprovalGroup {
  approvals: (Approval)[];
}

export interface ApprovalPage {
  approvals: (Approval)[];
  next: string | null;
}

export interface ApprovalPreview {
  preview: Preview;
  verdict: "allow" | "ask" | "deny";
  why?: string;
  subjects?: (Subject)[];
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
  values?: CallValues;
  plan?: string;
  group?: string;
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

export interface ArchiveOld {
  days?: number | null;
  dry_run?: boolean;
}

export interface Archived {
  dry_run: boolean;
  days: number;
  sessions: (Old)[];
  entries: number;
  bytes: number;
  segments: (string)[];
  sealed_bytes?: number;
}

export interface ArgumentOrigin {
  name: string;
  role: "account" | "amount" | "command" | "content" | "host" | "other" | "path" | "recipient" | "target" | "url" | "when";
  origin?: "none" | "trusted" | "unknown" | "untrusted" | "user";
  values?: (string)[];
  sources?: (string)[];
}

export interface ArgumentUse {
  name: string;
  role: "account" | "amount" | "command" | "content" | "host" | "other" | "path" | "recipient" | "target" | "url" | "when";
}

export interface Ask {
  type: "ask";
  reason: string;
  risk: "critical" | "high" | "low" | "medium";
  policies?: (string)[];
  sends_private?: boolean;
}

export interface AskedModel {
  seq: number;
  time_ms: number;
  model: string;
  failure?: string;
  message?: string;
  input_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  output_tokens?: number;
  cost_microusd?: number;
  priced?: string;
  duration_ms?: number;
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

export interface BackedUp {
  path: string;
  entries: number;
}

export interface Backup {
  name?: string;
  folder?: string;
}

export interface BackupList {
  folder: string;
  backups: (KeptBackup)[];
}

export interface BackupStatus {
  last?: MadeBackup | null;
  problem?: string;
  failed_ms?: number;
  failures?: number;
  drill?: CheckedBackup | null;
}

export interface Bad {
  tape: string;
  seq: number;
  position: number;
  problem: string;
}

export interface BilledTurn {
  turn: number;
  seq: number;
  model?: string;
  tokens: number;
  budget: number;
  parts: (AssembledPart)[];
  input_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  output_tokens?: number;
}

export interface Body {
  text: string;
  reply_to?: string;
  buttons?: (Button)[];
  files?: (SentFile)[];
  ping_everyone?: boolean;
  edits?: string;
}

export interface Bounds {
  fuel?: number;
  memory_bytes?: number;
  time_ms?: number;
  output_bytes?: number;
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

export interface BudgetList {
  budgets: (BudgetState)[];
}

export interface BudgetState {
  name: string;
  source: string;
  terms: Terms;
  says: string;
  who: string;
  period: string;
  until_ms: number;
  unit: string;
  limit: number;
  spent: number;
  reserved: number;
  left: number;
}

export interface Budgets {
  turns?: number;
  calls?: number;
  active_ms?: number;
  tokens?: number;
  microusd?: number;
}

export interface BundledEntry {
  position: number;
  tape: string;
  seq: number;
  time_ms: number;
  run_id?: string;
  principal: string;
  kind: string;
  link: number;
  hash: string;
  prev: string;
  proof: (string)[];
  body?: string | null;
  body_sha256?: string;
}

export interface Button {
  label: string;
  value: string;
  style?: "bad" | "good" | "plain";
}

export interface CachedTokens {
  cached_tokens?: number;
}

export interface Call {
  id: string;
  tool: string;
  arguments: { [name: string]: unknown };
  native_id?: string;
  malformed?: string;
  repaired?: string;
}

export interface CallOptions {
  effort?: "" | "high" | "low" | "max" | "medium" | "minimal" | "none" | "xhigh";
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  stop?: (string)[];
  seed?: number | null;
  service_tier?: string;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  verbosity?: "" | "high" | "low" | "medium";
  parallel_tool_calls?: boolean | null;
}

export interface CallValues {
  arguments?: (ArgumentOrigin)[];
  declared?: boolean;
  reads_only?: boolean;
  same_source?: boolean;
  planned?: number;
  vouched?: boolean;
}

export interface Called {
  schedule_id: string;
  due_ms: number;
  state: string;
}

export interface CalledFunction {
  name: string;
  arguments: string;
}

export interface Cancel {
  reason?: string;
}

export interface Candidate {
  candidate_id: string;
  owner: string;
  session_id?: string;
  run_id?: string;
  kind: "fact" | "policy" | "preference" | "procedure";
  content: string;
  confidence_bps: number;
  risk?: "critical" | "high" | "low" | "medium";
  label?: Label;
  evidence?: (Evidence)[];
  state?: "proposed" | "accepted" | "applied" | "conflicted" | "pending_review" | "rejected" | "rolled_back" | "suppressed";
  reason?: string;
  memory_kind?: "constraint" | "decision" | "fact" | "preference" | "procedure";
  about?: string;
  steps?: (ProcedureStep)[];
  runs?: (string)[];
  cedar?: string;
  found_by?: string;
  conflicts_with?: string;
  automatic?: boolean;
  effect?: Effect;
  doing?: "" | "apply" | "roll_back";
  position?: number;
  created_ms?: number;
  updated_ms?: number;
}

export interface CandidateList {
  candidates: (Candidate)[];
  counts: { [name: string]: number };
  next?: string;
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
  content?: string;
}

export interface Cause {
  role: "answer" | "approval" | "attempt" | "call" | "cost" | "decision" | "effect" | "entry" | "fork" | "grant" | "input" | "memory" | "message" | "model" | "notice" | "prompt" | "reply" | "request" | "result" | "route" | "run" | "schedule" | "subagent" | "undo";
  text: string;
  by?: string;
  names?: (string)[];
  kind?: string;
  tape?: string;
  seq?: number;
  position?: number;
  time_ms?: number;
  run_id?: string;
  cost_microusd?: number;
  policy_version?: string;
  causes?: (Cause)[];
}

export interface Cell {
  word: "allow" | "ask" | "deny" | null;
  reason?: string;
  policies?: (string)[];
}

export interface Certificate {
  fingerprint: string;
  purpose: "authority" | "server" | "worker";
  name: string;
  issued_ms: number;
  expires_ms: number;
  revoked_ms?: number;
}

export interface ChangeChannel {
  verb: "pause" | "reconnect" | "resume";
}

export interface ChangeKind {
  paused: boolean;
}

export interface ChangePerson {
  channel: string;
  sender: string;
  verb: "link" | "revoke";
  principal?: string;
}

export interface ChangeRules {
  changes: { [name: string]: unknown };
}

export interface ChangeTask {
  verb: "cancel" | "pause" | "resume" | "retry";
}

export interface Changed {
  calls: number;
  examples: (Example)[];
}

export interface ChangedFile {
  seq: number;
  path: string;
  change: "created" | "deleted" | "modified" | "restored";
  by: string;
  call_id?: string;
  run_id?: string;
}

export interface ChannelList {
  channels: (ChannelStatus)[];
}

export interface ChannelStatus {
  name: string;
  kind: string;
  enabled: boolean;
  paused: boolean;
  connection: ConnectionStatus;
  rules: Rules;
  changed: { [name: string]: unknown };
  messages?: { [name: string]: number };
  outbox?: { [name: string]: number };
}

export interface ChatCompletion {
  id: string;
  created: number;
  model: string;
  choices: (Choice)[];
  usage: ChatUsage;
  object?: "chat.completion";
  palyra_session?: string;
}

export interface ChatMessage {
  role: "assistant" | "developer" | "system" | "tool" | "user";
  content?: string | (ContentPart)[] | null;
  tool_calls?: (ToolCalled)[] | null;
  tool_call_id?: string;
}

export interface ChatRequest {
  messages: (ChatMessage)[];
  model?: string;
  stream?: boolean | null;
  stream_options?: StreamOptions | null;
  tools?: (ChatTool)[] | null;
  tool_choice?: unknown;
  user?: string | null;
  n?: number | null;
  logprobs?: boolean | null;
  modalities?: (string)[] | null;
  response_format?: { [name: string]: unknown } | null;
  functions?: (unknown)[] | null;
  reasoning_effort?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stop?: string | (string)[] | null;
  seed?: number | null;
  service_tier?: string | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  verbosity?: string | null;
  parallel_tool_calls?: boolean | null;
  logit_bias?: { [name: string]: number } | null;
  web_search_options?: { [name: string]: unknown } | null;
}

export interface ChatTool {
  type: "function";
  function: Function;
}

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: CachedTokens;
  completion_tokens_details: ReasoningTokens;
}

export interface CheckBackup {
  name?: string;
}

export interface CheckedBackup {
  name: string;
  ok: boolean;
  entries?: number;
  schema?: number;
  version?: string;
  files?: number;
  encrypted?: boolean;
  keys?: boolean;
  checked_ms?: number;
  problem?: string;
}

export interface CheckpointState {
  origin: string;
  keys: (string)[];
  newest?: StoredCheckpoint | null;
  problem?: string;
  anchors?: (AnchorReport)[];
}

export interface Choice {
  message: CompletionMessage;
  finish_reason: string;
  index?: number;
  logprobs?: null;
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
  values?: CallValues;
}

export interface Clash {
  path: string;
  why: string;
}

export interface Clean {
  dry_run?: boolean;
}

export interface Cleaned {
  dry_run: boolean;
  artifacts: number;
  bytes: number;
}

export interface CleanedUp {
  artifacts: Cleaned;
  file?: Maintained | null;
}

export interface ClearLabel {
  path: string;
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

export interface Compact {
  preview?: boolean;
}

export interface Compaction {
  seq?: number;
  time_ms?: number;
  applied?: boolean;
  stands?: boolean;
  automatic?: boolean;
  why?: string;
  summary?: string;
  from_seq?: number;
  upto_seq?: number;
  turns?: number;
  records?: number;
  tokens_before?: number;
  tokens_after?: number;
  written_by?: "" | "extractive" | "model";
  fallback?: string;
}

export interface CompactionPage {
  compactions: (Compaction)[];
}

export interface CompletionMessage {
  content: string | null;
  role?: "assistant";
  refusal?: null;
  tool_calls?: (ToolCall)[];
}

export interface ConfigChanges {
  changes: { [name: string]: boolean | number | string };
}

export interface ConfigReloaded {
  live: (string)[];
  after_restart: (string)[];
}

export interface ConnectionStatus {
  state: "connected" | "connecting" | "failed" | "lost" | "off";
  detail?: string;
  account?: string;
  place?: string;
  connects?: number;
  since_ms?: number;
  heard_ms?: number;
}

export interface ConnectorKindList {
  kinds: (KindInfo)[];
}

export interface ConsistencyProof {
  old: number;
  size: number;
  proof: (string)[];
  old_root: string;
  root: string;
}

export interface ContentPart {
  type: string;
  text?: string;
  refusal?: string;
  image_url?: string | ImageUrl | null;
  file?: FilePart | null;
  filename?: string;
  file_data?: string;
}

export interface ConversationRequest {
  items?: (unknown)[] | null;
}

export interface CronTrigger {
  on: "cron";
  expression: string;
}

export interface DeadLetters {
  replies: (Reply)[];
}

export interface Deciding {
  id: string;
  action: string;
  effect: string;
  reason: string;
  file: string;
  line: number;
}

export interface Decision {
  accepted: boolean;
  reason: "accepted" | "broadcast_denied" | "channel_off" | "direct_denied" | "empty" | "no_mention" | "not_allow_listed" | "over_limit" | "oversized" | "pairing_required" | "router_off" | "sender_denied";
  sentence: string;
  checks?: (RoutingCheck)[];
}

export interface DefaultModel {
  model: string;
}

export interface Deleted {
  id: string;
  object?: "response";
  deleted?: boolean;
}

export interface DeletedConversation {
  id: string;
  object?: "conversation.deleted";
  deleted?: boolean;
}

export interface DeletedSession {
  session_id: string;
  segment_id: string;
  entries: number;
  bytes: number;
}

export interface Deny {
  type: "deny";
  reason: string;
  policies?: (string)[];
}

export interface Diagnosis {
  ok: boolean;
  checks: (DoctorCheck)[];
}

export interface Difference {
  seq: number;
  where?: string;
  recorded?: Side | null;
  replayed?: Side | null;
  hint?: string;
}

export interface Disclosure {
  session_id?: string;
  run_id?: string;
  first?: number;
  last?: number;
  bodies?: boolean;
  without?: (number)[];
}

export interface DoctorCheck {
  id: string;
  title: string;
  state: "fail" | "ok" | "warn";
  detail: string;
  fix?: string;
  repairable?: boolean;
}

export interface DraftTest {
  name?: string | null;
  text?: string;
  preset?: "coding" | "default" | "locked" | "research" | null;
  since_ms?: number;
}

export interface DrainNode {
  node?: string;
}

export interface DrainWorker {
  on?: boolean;
}

export interface Earlier {
  role: "assistant" | "tool" | "user";
  text: string;
}

export interface Effect {
  memory_id?: string;
  replaced?: string;
  skill?: string;
  file?: string;
}

export interface EmbeddingList {
  data: (OneEmbedding)[];
  model: string;
  usage: EmbeddingUsage;
  object?: "list";
}

export interface EmbeddingRequest {
  input: string | (string | number | (number)[])[];
  model?: string;
  user?: string | null;
  encoding_format?: "base64" | "float";
  dimensions?: number | null;
}

export interface EmbeddingUsage {
  prompt_tokens: number;
  total_tokens: number;
}

export interface EnrolWorker {
  name: string;
}

export interface Enrolment {
  name: string;
  code: string;
  expires_ms: number;
  authority: string;
  port: number;
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
  link?: number;
  event: RunAccepted | RunStarted | RunResumed | RunWaiting | RunClockChanged | RunCompleted | RunFailed | RunCancelled | InputReceived | InputAssembled | RoutePlanned | ModelReplied | ModelFailed | ModelUsed | ToolProposed | ToolDecided | ToolStarted | ToolFinished | ToolHandedOver | AnswerRefused | PlanDeclared | FilesLabelled | ToolUndone | ApprovalRequested | ApprovalResolved | AgentSpawned | AgentAsked | AgentAnswered | SessionCreated | SessionReset | SessionBranched | SessionCompacted | SessionUncompacted | SessionPinned | SessionRestored | SessionRuled | SessionChanged | CandidateProposed | CandidateSettled | MemoryWritten | MemoryRemoved | MessageReceived | MessageRefused | ReplySent | ReplyAbandoned | IncidentOpened | IncidentTried | IncidentClosed | OwnerNotified | TaskFinished | AdminChanged | AccessRefused | AccessWidened | WorkerJoined | WorkerLeft | WorkerRefused | JournalArchived | JournalRestored | JournalCheckpointed;
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

export interface Evidence {
  session_id: string;
  seq: number;
  quote?: string;
  position?: number;
}

export interface Example {
  call_id: string;
  session_id: string;
  time_ms: number;
  tool: string;
  about: string;
  before: "allow" | "ask" | "deny";
  after: "allow" | "ask" | "deny";
  reason: string;
  policies: (string)[];
  times: number;
}

export interface Explain {
  tool: string;
  arguments: { [name: string]: unknown };
  session_id?: string | null;
  origin?: "api" | "channel" | "child" | "interactive" | "scheduled";
}

export interface ExplainedCall {
  call_id: string;
  session_id: string;
  time_ms: number;
  tool: string;
  about: string;
  decided: ToolDecided;
  now: Explanation;
}

export interface Explanation {
  verdict: Allow | Ask | Deny;
  version: string;
  tool: string;
  principal: string;
  rules: (Deciding)[];
  errors: (string)[];
  facts: { [name: string]: unknown };
  asked?: (string)[];
}

export interface Exposure {
  host?: string;
  tls?: boolean;
  own_files?: boolean;
  quic?: boolean;
  grpc?: boolean;
  workers?: string;
  names?: (string)[];
  allowed_hosts?: (string)[];
  allowed_origins?: (string)[];
}

export interface FileChange {
  path: string;
  change: "created" | "deleted" | "modified" | "restored";
}

export interface FileDigest {
  path: string;
  digest?: string;
}

export interface FilePart {
  filename?: string;
  file_data?: string;
}

export interface FileTrigger {
  on: "file";
  path: string;
}

export interface FilesLabelled {
  kind: "files.labelled";
  files: (FileDigest)[];
  label?: Label;
  session_id?: string;
  run_id?: string;
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

export interface Fork {
  at?: number;
  model?: string;
  policy?: string;
}

export interface Forked {
  run_id: string;
  session_id: string;
  seq: number;
  forked_run_id: string;
  forked_session_id: string;
  at: number;
}

export interface Found {
  item: Item;
  score: number;
  parts: ScoreParts;
}

export interface FoundModel {
  name: string;
  context_tokens?: number;
  tools?: boolean | null;
  vision?: boolean | null;
}

export interface FoundProvider {
  name: string;
  title: string;
  kind: "anthropic" | "gemini" | "openai-chat" | "openai-responses";
  base_url: string;
  key?: string;
  models?: (FoundModel)[];
  local?: boolean;
  advice?: string;
  configured?: boolean;
  loading?: boolean;
}

export interface FoundProviders {
  found: (FoundProvider)[];
}

export interface Function {
  name: string;
  description?: string | null;
  parameters?: { [name: string]: unknown } | null;
}

export interface FunctionCalled {
  name?: string;
  arguments?: string;
}

export interface Given {
  instructions?: string;
  earlier?: (Earlier)[];
  turns?: (GivenTurn)[];
}

export interface GivenCall {
  call_id: string;
  name: string;
  arguments?: { [name: string]: unknown };
}

export interface GivenTurn {
  role: "assistant" | "tool" | "user";
  text?: string;
  calls?: (GivenCall)[];
  call_id?: string;
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
  uses?: { [name: string]: GrantUse };
}

export interface GrantUse {
  calls: number;
  last_ms: number;
}

export interface GroupAnswer {
  decision: "allow" | "deny";
  only?: (string)[];
  others?: "" | "allow" | "deny";
  scope?: "always" | "once" | "session" | "timed";
  for_ms?: number;
  reason?: string;
  seen?: { [name: string]: string };
}

export interface Healing {
  mode?: "auto" | "disabled" | "observe_only";
  every_ms?: number;
  run_ms?: number;
  call_ms?: number;
  task_ms?: number;
  helper_ms?: number;
  approval_ms?: number;
  forgotten?: "expire" | "remind";
  free_bytes?: number;
  log_bytes?: number;
}

export interface Health {
  status: "ok";
  version: string;
}

export interface Hit {
  id: string;
  calls: number;
}

export interface HomeBackupList {
  every: string;
  keep: number;
  drill: string;
  target: string;
  encrypted: boolean;
  status: BackupStatus;
  backups: (StoredBackup)[];
  problem?: string;
}

export interface HookTrigger {
  on: "webhook";
}

export interface ImageUrl {
  url: string;
}

export interface Import {
  new?: (NewMemory)[];
  items?: (Item)[];
  session_id?: string;
}

export interface Imported {
  taken: number;
  merged: number;
  review: number;
}

export interface Inbound {
  native_id: string;
  conversation: string;
  sender: Sender;
  text?: string;
  thread?: string;
  files?: (InboundFile)[];
  is_direct?: boolean;
  mentions_agent?: boolean;
  mentions_everyone?: boolean;
  reply_to?: string;
  pressed?: boolean;
  sent_ms?: number;
  forwarded?: boolean;
  title?: string;
}

export interface InboundFile {
  name: string;
  data: string;
  media_type?: string;
}

export interface Incident {
  incident_id: string;
  key: string;
  domain: "approval" | "artifact" | "browser" | "connector" | "journal" | "resource" | "run" | "task" | "worker";
  severity: "critical" | "error" | "info" | "warning";
  summary: string;
  fix?: string;
  opened_ms: number;
  closed_ms?: number;
  outcome?: string;
  tried?: (Tried)[];
}

export interface IncidentClosed {
  kind: "incident.closed";
  incident_id: string;
  outcome: string;
}

export interface IncidentList {
  incidents: (Incident)[];
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

export interface InclusionProof {
  position: number;
  size: number;
  link: number;
  hash: string;
  proof: (string)[];
  root: string;
  checkpoint?: string;
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
  kept_memory?: (string)[];
  left_out?: number;
  options?: CallOptions;
  fitted?: boolean;
  offered?: (string)[];
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

export interface Invitation {
  pairing_id: string;
  channel: string;
  code: string;
  expires_ms: number;
}

export interface Invite {
  channel: string;
  for_ms?: number;
}

export interface Item {
  memory_id: string;
  owner: string;
  text: string;
  kind?: "constraint" | "decision" | "fact" | "preference" | "procedure";
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

export interface ItemList {
  data: ({ [name: string]: unknown })[];
  first_id: string;
  last_id: string;
  has_more?: boolean;
  object?: "list";
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

export interface KeptBackup {
  name: string;
  bytes: number;
  made_ms: number;
}

export interface KeyRotated {
  secrets: number;
}

export interface KindCount {
  kind: string;
  states: { [name: string]: number };
  paused?: boolean;
  oldest_ready_ms?: number;
}

export interface KindInfo {
  name: string;
  title: string;
  settings: (Setting)[];
  permissions: (string)[];
  steps: (string)[];
  docs: string;
}

export interface Label {
  integrity?: "trusted" | "untrusted";
  confidentiality?: "private" | "public" | "secret";
  sources?: (string)[];
  private_sources?: (string)[];
}

export interface LabelledFile {
  path: string;
  digest: string;
  label: Label;
  session_id: string;
  run_id: string;
  labelled_ms: number;
}

export interface LabelledFiles {
  files: (LabelledFile)[];
}

export interface Lasting {
  seq: number;
  call_id: string;
  run_id: string;
  tool: string;
  effect: "idempotent" | "once" | "pure" | "reversible";
  what: string;
  outcome?: string;
}

export interface LearningSettings {
  enabled?: boolean;
  thresholds?: Thresholds;
  cooldown_ms?: number;
  budget_tokens?: number;
  most_candidates?: number;
  model?: string;
}

export interface Lease {
  call_id: string;
  worker: string;
  attempt: number;
  session_id: string;
  run_id: string;
  tool: string;
  state: "cancelled" | "done" | "held" | "lost";
  since_ms: number;
  ended_ms: number;
}

export interface Left {
  call_id: string;
  tool: string;
  about: string;
  why: string;
}

export interface Limit {
  name: string;
  terms: Terms;
  source?: "api" | "config" | "run";
}

export interface Limits {
  time_ms?: number;
  input_bytes?: number;
  output_bytes?: number;
}

export interface LineProblem {
  approval_id: string;
  message: string;
}

export interface Listed {
  record: Record;
  state: "enabled" | "quarantined" | "trusted";
  publisher: string;
  problem?: string;
}

export interface Listener {
  name: "grpc" | "http" | "http3" | "workers";
  address: string;
  tls?: boolean;
}

export interface ListenerChanges {
  grpc?: boolean | null;
  workers?: string | null;
  quic?: boolean | null;
  tls?: boolean | null;
  host?: string | null;
}

export interface Listening {
  exposure: Exposure;
  listeners: (Listener)[];
  served: Shown | null;
  authority: Shown | null;
  workers: (Certificate)[];
}

export interface Load {
  samples: (LoadSample)[];
}

export interface LoadSample {
  time_ms: number;
  cpu_bps: number;
  load_bps: number;
  memory_bytes: number;
  disk_free_bytes: number;
  disk_total_bytes: number;
  runs: number;
  queued: number;
  running: number;
  journal_entries: number;
  journal_bytes: number;
}

export interface LoginLink {
  url: string;
}

export interface MadeBackup {
  name: string;
  target: string;
  bytes: number;
  entries: number;
  encrypted: boolean;
  keys: string;
  made_ms: number;
  removed?: (string)[];
}

export interface MadeToken {
  token: string;
  info: Token;
}

export interface Maintained {
  log_bytes: number;
  free_bytes: number;
  released_bytes: number;
}

export interface MarkedRead {
  marked: number;
}

export interface McpServerChange {
  enabled: boolean;
}

export interface Me {
  account: string;
  names?: (string)[];
  place?: string;
}

export interface MemoryChange {
  text?: string | null;
  kind?: "constraint" | "decision" | "fact" | "preference" | "procedure" | null;
  confidence_bps?: number | null;
  valid_until_ms?: number | null;
  pinned?: boolean | null;
}

export interface MemoryRemoved {
  kind: "memory.removed";
  memory_id: string;
  reason?: string;
}

export interface MemoryStatus {
  counts: { [name: string]: number };
  not_embedded: number;
  words_only: string;
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
  about?: string;
}

export interface MessageDraft {
  text: string;
}

export interface MessagePage {
  messages: (StoredMessage)[];
  next?: number;
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

export interface MessageStep {
  time_ms: number;
  step: string;
  detail?: string;
}

export interface MetSource {
  source: string;
  times: number;
  words: string;
  session_id: string;
  seq: number;
  time_ms: number;
}

export interface ModelDelta {
  kind: "model.delta";
  run_id: string;
  turn: number;
  text?: string;
  reasoning?: string;
  call?: string;
  whole?: boolean;
  progress?: number | null;
}

export interface ModelFailed {
  kind: "model.failed";
  turn: number;
  provider: string;
  model: string;
  failure: "auth" | "bad_request" | "content_blocked" | "context_too_long" | "cut" | "interrupted" | "malformed" | "model_not_found" | "network" | "not_a_model_server" | "overloaded" | "permission" | "quota" | "rate_limited" | "timeout" | "tools_unsupported";
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
  vision?: boolean;
  private?: boolean;
  input_price?: number | null;
  output_price?: number | null;
  tools?: string;
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
  stop?: "content_filter" | "cut" | "described" | "end" | "interrupted" | "length" | "repetition" | "stray_call" | "tool_calls";
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

export interface Moment {
  session_id: string;
  seq: number;
  head_seq: number;
  time_ms: number;
  kind: string;
  turns: (ShownTurn)[];
  left_out: number;
  unread: (string)[];
  label: Label;
  rules: (SessionRule)[];
  runs: (RunThen)[];
  changed: (ChangedFile)[];
  lasting: (Lasting)[];
}

export interface Native {
  dialect: string;
  items: (unknown)[];
}

export interface NewChannel {
  name: string;
  kind: string;
  settings?: { [name: string]: string };
}

export interface NewMcpServer {
  name: string;
  command?: (string)[];
  url?: string;
  headers?: (string)[];
  env?: (string)[];
  folder?: string;
  writable?: boolean;
  hosts?: (string)[];
}

export interface NewMemory {
  text: string;
  kind?: "constraint" | "decision" | "fact" | "preference" | "procedure";
  scope?: "channel" | "principal" | "session" | "workspace";
  source?: string;
  place?: number;
  confidence_bps?: number;
  valid_from_ms?: number;
  valid_until_ms?: number;
  ttl_ms?: number;
  pinned?: boolean;
}

export interface NewPreset {
  preset: "coding" | "default" | "locked" | "research";
}

export interface NewProvider {
  name: string;
  kind: "anthropic" | "gemini" | "openai-chat" | "openai-responses";
  base_url?: string;
  models?: (string)[];
  key?: string;
  key_from?: string;
  first?: boolean;
  windows?: (string)[] | null;
  vision?: boolean | null;
}

export interface NewPublisher {
  name: string;
  key: string;
}

export interface NewRule {
  words: string;
}

export interface NewSchedule {
  text: string;
  when: string;
  name?: string;
  zone?: string;
  overlap?: "queue" | "replace" | "skip";
  missed?: "catch_up" | "skip" | null;
  quiet?: Quiet | null;
  scopes?: (Subject)[];
  ask?: "deny" | "wait";
  model?: string;
  workspace?: string;
  fresh?: boolean;
}

export interface NewSecret {
  name: string;
  value: string;
  scope?: string;
  hosts?: (string)[] | null;
  tools?: (string)[] | null;
}

export interface NewShadow {
  named: string;
}

export interface NewSkillState {
  state: "enabled" | "quarantined" | "trusted";
}

export interface NewToken {
  name: string;
  scope: "client" | "connector" | "operator" | "owner" | "viewer" | "worker";
  expires_ms?: number;
  workspace?: string;
}

export interface NewValue {
  name: string;
  value: string;
  scope?: string;
}

export interface NodeInfo {
  node_id: string;
  name: string;
  state: "draining" | "gone" | "leading" | "standing by";
  version: string;
  address: string;
  epoch: number;
  started_ms: number;
  heartbeat_ms: number;
  silent_ms: number;
}

export interface NodeList {
  nodes: (NodeInfo)[];
}

export interface NotUndone {
  call_id: string;
  tool: string;
  why: string;
}

export interface Note {
  workspace: string;
  file: string;
  state: "accepted" | "changed" | "missing" | "new" | "unusable";
  applies?: string;
  sha256?: string;
  size?: number;
  text?: string;
  diff?: string;
  problem?: string;
  accepted_sha256?: string;
  accepted_by?: string;
  accepted_ms?: number;
}

export interface NoteList {
  notes: (Note)[];
}

export interface Nothing {}

export interface Notice {
  notice_id: string;
  about: "approval" | "budget" | "channel" | "daemon" | "incident" | "learning" | "notes" | "provider" | "schedule";
  key: string;
  text: string;
  link?: string;
  created_ms: number;
  read_ms?: number;
}

export interface NoticeList {
  notices: (Notice)[];
  unread: number;
}

export interface Old {
  session_id: string;
  owner: string;
  title: string;
  updated_ms: number;
  entries: number;
}

export interface OneEmbedding {
  index: number;
  embedding: (number)[] | string;
  object?: "embedding";
}

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
  about: "approval" | "budget" | "channel" | "daemon" | "incident" | "learning" | "notes" | "provider" | "schedule";
  key: string;
  text: string;
  link?: string;
  to?: string;
}

export interface Pairing {
  pairing_id: string;
  connector: string;
  kind: "invitation" | "request";
  sender?: string;
  display?: string;
  conversation?: string;
  thread?: string;
  state: "approved" | "denied" | "expired" | "pending" | "replaced";
  grant_ms?: number;
  created_ms: number;
  expires_ms: number;
  settled_ms?: number;
  settled_by?: string;
}

export interface PairingList {
  pairings: (Pairing)[];
}

export interface PassedOver {
  model: string;
  why: string;
}

export interface PastCall {
  time_ms: number;
  session_id: string;
  verdict: string;
  about: string;
}

export interface PastCalls {
  calls?: number;
  asked?: number;
  examples?: (PastCall)[];
}

export interface PathList {
  paths: (string)[];
}

export interface Pause {
  paused: boolean;
}

export interface Pending {
  server: string;
  tool: string;
  fingerprint: string;
  new: boolean;
  change: string;
  words?: string;
  use?: ToolUse | null;
}

export interface People {
  people: (Person)[];
}

export interface Permission {
  tool: string;
  kind: "effect" | "host" | "limit" | "read" | "secret" | "write";
  value: string;
}

export interface Permit {
  id: string;
  tool: string;
  principal: string;
  what: string;
  cedar: string;
  covers: number;
  examples: (string)[];
  kept_narrow_by: (string)[];
}

export interface Person {
  connector: string;
  sender: string;
  display?: string;
  principal?: string;
  paired_ms?: number;
  paired_until_ms?: number;
  revoked_ms?: number;
  granted_by?: string;
  conversation?: string;
  seen_ms?: number;
}

export interface Pin {
  seq: number;
  removed?: boolean;
}

export interface Pinned {
  pins: (number)[];
}

export interface PlanDeclared {
  kind: "plan.declared";
  calls?: (PlannedCall)[];
  asked?: (PlannedCall)[];
}

export interface PlannedCall {
  tool: string;
  times?: number;
  on?: string;
}

export interface PlannedRoute {
  seq: number;
  time_ms: number;
  plan: RoutePlanned;
  calls: (AskedModel)[];
}

export interface Point {
  kind: "constraint" | "course" | "decision" | "done" | "fact" | "question";
  text: string;
  seq?: number;
  times?: number;
}

export interface PolicyDraft {
  name: string;
  text: string;
  preset?: "coding" | "default" | "locked" | "research" | null;
}

export interface PolicyFile {
  name: string;
  text: string;
  digest: string;
  shipped?: boolean;
}

export interface PolicyFiles {
  folder: string;
  preset: string;
  presets: (string)[];
  files: (PolicyFile)[];
  schema?: string;
}

export interface PolicyInForce {
  version: string;
  preset: string;
  folder: string;
  policies: (Rule)[];
  problems: (PolicyProblem)[];
}

export interface PolicyProblem {
  file: string;
  line: number;
  message: string;
}

export interface PolicyState {
  version: string;
  preset: string;
}

export interface PolicyText {
  name: string;
  text: string;
}

export interface PolicyTexts {
  version: string;
  files: (PolicyText)[];
}

export interface Preview {
  kind: "command" | "diff" | "request" | "text";
  title: string;
  body?: string;
  length?: number;
  digest?: string;
}

export interface PreviewMessage {
  sender: string;
  text?: string;
  conversation?: string;
  thread?: string;
  direct?: boolean;
  everyone?: boolean;
  files?: number;
  verified?: boolean;
}

export interface PreviewedReference {
  reference: string;
  kind: "diff" | "file" | "folder" | "memory" | "run" | "staged" | "url";
  target?: string;
  size?: number;
  unit?: string;
  characters?: number;
  tokens?: number;
  truncated?: boolean;
  label?: Label;
  warnings?: (string)[];
  error?: string;
  policies?: (string)[];
}

export interface Problem {
  code: string;
  message: string;
  retryable: boolean;
  details: { [name: string]: unknown };
}

export interface ProcedureStep {
  tool: string;
  arguments?: { [name: string]: unknown };
}

export interface ProofBundle {
  format?: "palyra-proof-1";
  about: Disclosure;
  made_ms: number;
  checkpoint: string;
  checkpoint_ms: number;
  keys: (string)[];
  rotations: (string)[];
  entries: (BundledEntry)[];
  policy_version?: string;
  policies?: (PolicyTexts)[];
  redaction?: string;
}

export interface Proposal {
  name: string;
  description: string;
  version: string;
  digest: string;
  permissions: (Permission)[];
  added: (Permission)[];
  dropped?: (Permission)[];
  changes?: { [name: string]: string };
  updates: boolean;
  signer: string;
  publisher: string;
  state: "enabled" | "quarantined" | "trusted";
  older_than?: string;
}

export interface ProviderInfo {
  name: string;
  kind: string;
  base_url: string;
  models: (string)[];
  key: string;
  found: boolean;
  default: boolean;
  running: boolean;
  healthy: boolean;
  windows?: (string)[];
}

export interface ProviderList {
  providers: (ProviderInfo)[];
  restart: boolean;
}

export interface Publisher {
  name: string;
  key: string;
}

export interface PublisherList {
  publishers: (Publisher)[];
}

export interface Purge {
  memory_ids?: (string)[];
  everything?: boolean;
}

export interface Purged {
  removed: number;
}

export interface Quiet {
  from: string;
  to: string;
  then?: "later" | "skip";
}

export interface Ready {
  status: "ready" | "unavailable";
  reason?: string;
}

export interface Reasoning {
  effort?: string | null;
  summary?: unknown;
  generate_summary?: unknown;
}

export interface ReasoningTokens {
  reasoning_tokens?: number;
}

export interface Record {
  name: string;
  description: string;
  version?: string;
  digest: string;
  folder: string;
  files: { [name: string]: string };
  granted?: (Permission)[];
  state?: "enabled" | "quarantined" | "trusted";
  vouched?: "" | "operator" | "publisher";
  signer?: string;
  signature?: string;
  generated?: boolean;
  installed_ms?: number;
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

export interface ReferencesPreview {
  references: (PreviewedReference)[];
  characters: number;
  tokens: number;
  errors?: (string)[];
}

export interface Reflected {
  session_id: string;
  candidates: (Candidate)[];
  found_by?: string;
  note?: string;
}

export interface Rejecting {
  reason?: string;
}

export interface Reloaded {
  version: string;
  added?: (string)[];
  removed?: (string)[];
  changed?: (string)[];
  problems?: (PolicyProblem)[];
}

export interface Repair {
  id: string;
  title: string;
  worked: boolean;
  detail: string;
}

export interface Repaired {
  ok: boolean;
  repairs: (Repair)[];
  checks: (DoctorCheck)[];
}

export interface RepeatedAnswer {
  tool: string;
  about: string;
  decision: "again" | "allow" | "deny" | "expired" | "happened" | "skip" | "withdrawn";
  times: number;
}

export interface Replayed {
  session_id: string;
  run_id?: string;
  title?: string;
  identical: boolean;
  entries: number;
  difference?: Difference | null;
}

export interface Reply {
  number: number;
  reply_id: string;
  part: number;
  parts: number;
  message_id?: string;
  connector: string;
  conversation: string;
  thread?: string;
  kind: "answer" | "approval" | "command" | "edit" | "failure" | "message" | "pairing" | "told";
  state: "dead" | "dropped" | "sending" | "sent" | "waiting";
  attempts?: number;
  ready_ms?: number;
  error?: string;
  native_id?: string;
  doubtful?: boolean;
  created_ms: number;
  ended_ms?: number;
  body: Body;
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

export interface Report {
  version: string;
  calls: number;
  same: number;
  newly_denied: Changed;
  newly_allowed: Changed;
  newly_asked: Changed;
  hits: (Hit)[];
  never_hit: (string)[];
  not_asked: number;
  unknown: number;
  inexact: number;
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

export interface Response {
  id: string;
  created_at: number;
  model: string;
  status: "cancelled" | "completed" | "failed" | "in_progress" | "incomplete";
  output: ({ [name: string]: unknown })[];
  previous_response_id: string | null;
  instructions: string | null;
  usage?: ResponseUsage | null;
  error?: { [name: string]: unknown } | null;
  incomplete_details?: { [name: string]: unknown } | null;
  metadata?: { [name: string]: string };
  parallel_tool_calls?: boolean;
  temperature?: number | null;
  top_p?: number | null;
  max_output_tokens?: number | null;
  service_tier?: string | null;
  reasoning?: { [name: string]: string | null } | null;
  tool_choice?: unknown;
  tools?: ({ [name: string]: unknown })[];
  text?: { [name: string]: unknown };
  background?: boolean | null;
  conversation?: { [name: string]: string } | null;
  object?: "response";
  palyra_session?: string;
}

export interface ResponseItem {
  type?: string;
  role?: "assistant" | "developer" | "system" | "user";
  content?: string | (ContentPart)[] | null;
  call_id?: string;
  name?: string;
  arguments?: string;
  output?: string | (ContentPart)[] | null;
}

export interface ResponseRequest {
  input: string | (ResponseItem)[];
  model?: string;
  instructions?: string | null;
  previous_response_id?: string | null;
  stream?: boolean | null;
  tools?: (ResponseTool)[] | null;
  tool_choice?: unknown;
  user?: string | null;
  text?: { [name: string]: unknown } | null;
  background?: boolean | null;
  conversation?: unknown;
  reasoning?: Reasoning | null;
  temperature?: number | null;
  top_p?: number | null;
  max_output_tokens?: number | null;
  service_tier?: string | null;
  parallel_tool_calls?: boolean | null;
  include?: (string)[] | null;
}

export interface ResponseTool {
  type: string;
  name?: string;
  description?: string | null;
  parameters?: { [name: string]: unknown } | null;
  filters?: { [name: string]: unknown } | null;
}

export interface ResponseUsage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  input_tokens_details: CachedTokens;
  output_tokens_details: ReasoningTokens;
}

export interface Restart {
  started_ms: number;
}

export interface Retry {
  model?: string;
}

export interface RetryPlanned {
  kind: "run.retry_planned";
  run_id: string;
  cause: "auth" | "bad_request" | "content_blocked" | "context_too_long" | "cut" | "interrupted" | "malformed" | "model_not_found" | "network" | "not_a_model_server" | "overloaded" | "permission" | "quota" | "rate_limited" | "timeout" | "tools_unsupported";
  message: string;
  next_try_ms: number;
  attempt?: number;
}

export interface Review {
  decision: "accept" | "reject";
}

export interface Rewind {
  to: number;
  files?: boolean;
  conversation?: boolean;
  preview?: boolean;
  stop?: boolean;
  conflicts?: "abort" | "skip";
}

export interface Rewound {
  session_id: string;
  to: number;
  seq?: number;
  preview?: boolean;
  files?: boolean;
  conversation?: boolean;
  changes?: (FileChange)[];
  conflicts?: (Clash)[];
  lasting?: (Lasting)[];
  rules?: (string)[];
  running?: (string)[];
  turns_now?: number;
  turns_then?: number;
  diff?: string;
}

export interface RotatedKey {
  key: string;
}

export interface RouteApproval {
  principal?: string;
  channel?: string;
  conversation?: string;
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

export interface RoutingCheck {
  reason: "accepted" | "broadcast_denied" | "channel_off" | "direct_denied" | "empty" | "no_mention" | "not_allow_listed" | "over_limit" | "oversized" | "pairing_required" | "router_off" | "sender_denied";
  passed: boolean;
  found?: string;
}

export interface RoutingPreview {
  decision: Decision;
  principal: string;
  acts_as: string;
  standing: string;
  session_key: string;
}

export interface RpcAnswer {
  jsonrpc: string;
  id: number | string | null;
  result?: { [name: string]: unknown };
  error?: RpcErrorBody;
}

export interface RpcErrorBody {
  code: number;
  message: string;
  data?: unknown;
}

export interface Rule {
  id: string;
  effect: string;
  reason: string;
  file: string;
  line: number;
}

export interface RuleList {
  rules: (ShownRule)[];
}

export interface Rules {
  allow?: (string)[];
  deny?: (string)[];
  direct?: "allow" | "deny" | "pairing";
  groups?: "allow" | "paired";
  mention?: boolean;
  names?: (string)[];
  broadcast?: "allow" | "deny" | "mention_only";
  isolate_session_by_sender?: boolean;
  per_minute?: number;
  waiting?: number;
  concurrency?: number;
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
  trace?: string;
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

export interface RunForecast {
  runs: number;
  times: number;
  tokens?: number;
  microusd?: number;
  most_microusd?: number;
  expected_tokens?: number;
  expected_microusd?: number;
  unpriced?: number;
  basis?: string;
}

export interface RunPage {
  runs: (RunRow)[];
  next: string | null;
}

export interface RunPlans {
  run: RunRow;
  plans: (PlannedRoute)[];
}

export interface RunReplay {
  run_id: string;
  state: "done" | "failed" | "running";
  replayed?: Replayed | null;
  problem?: string;
}

export interface RunResumed {
  kind: "run.resumed";
  after: "approval" | "budget" | "child" | "client" | "crash" | "in_doubt" | "paused" | "provider";
  node?: string;
  wanted?: Wanted | null;
  model?: string;
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
  wait?: RunWait | null;
}

export interface RunStarted {
  kind: "run.started";
  node?: string;
}

export interface RunThen {
  run_id: string;
  state: "accepted" | "cancelled" | "done" | "failed" | "in_progress" | "waiting";
}

export interface RunWait {
  cause: "auth" | "bad_request" | "content_blocked" | "context_too_long" | "cut" | "interrupted" | "malformed" | "model_not_found" | "network" | "not_a_model_server" | "overloaded" | "permission" | "quota" | "rate_limited" | "timeout" | "tools_unsupported";
  message: string;
  provider: string;
  model: string;
  next_try_ms: number;
  deadline_ms: number;
  attempt?: number;
  since_ms?: number;
}

export interface RunWaiting {
  kind: "run.waiting";
  cause: "auth" | "bad_request" | "content_blocked" | "context_too_long" | "cut" | "interrupted" | "malformed" | "model_not_found" | "network" | "not_a_model_server" | "overloaded" | "permission" | "quota" | "rate_limited" | "timeout" | "tools_unsupported";
  message: string;
  provider: string;
  model: string;
  next_try_ms: number;
  deadline_ms: number;
  since_ms?: number;
  attempt?: number;
  reason?: "provider";
}

export interface RunningCall {
  call_id: string;
  attempt: number;
  tool: string;
  session_id: string;
  run_id: string;
  since_ms: number;
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

export interface Saved {
  file: PolicyFile | null;
  reloaded: Reloaded;
}

export interface SavedFile {
  name: string;
  text: string;
  was?: string;
}

export interface SavedMcpServer {
  name: string;
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
  relevance?: (number)[];
}

export interface Secret {
  scope: string;
  name: string;
  size: "long" | "medium" | "short";
  hosts: (string)[];
  tools: (string)[];
  created_ms: number;
  updated_ms: number;
  used_ms?: number;
  readable?: boolean;
}

export interface SecurityDay {
  day_ms: number;
  tasks: number;
  quiet_tasks: number;
  calls: number;
  questions: number;
}

export interface SecurityScore {
  since_ms: number;
  score: number | null;
  lost_to_exposure: number;
  lost_to_questions: number;
  tasks: number;
  quiet_tasks: number;
  calls: number;
  questions: number;
  approved: number;
  edited: number;
  denied: number;
  expired: number;
  refused: number;
  unattended: number;
  exposed: number;
  days: (SecurityDay)[];
  tools: (UnattendedTool)[];
  repeated: (RepeatedAnswer)[];
  permits: (Permit)[];
  saved: number;
  sources: (MetSource)[];
}

export interface Segment {
  segment_id: string;
  bytes: number;
  entries: number;
  first_position: number;
  last_position: number;
  created_ms: number;
  tapes?: number;
}

export interface SegmentList {
  segments: (Segment)[];
}

export interface Sender {
  handle: string;
  display?: string;
  verified?: boolean;
}

export interface SentFile {
  session_id: string;
  artifact: string;
  name: string;
  media_type?: string;
}

export interface ServerList {
  servers: (ServerStatus)[];
}

export interface ServerStatus {
  name: string;
  state: "disabled" | "failed" | "ready" | "starting" | "stopped" | "waiting";
  detail?: string;
  transport?: "http" | "stdio";
  server?: string;
  protocol?: string;
  tools?: (string)[];
  pending?: (Pending)[];
  problems?: (string)[];
  starts?: number;
  log?: string;
  where?: string;
  tier?: string;
  package?: string;
  fingerprint?: string;
  late?: number;
  uses?: { [name: string]: ToolUse };
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
  model?: string;
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
  model?: string | null;
}

export interface SessionChanged {
  kind: "session.changed";
  title?: string | null;
  archived?: boolean | null;
  kept?: boolean | null;
  model?: string | null;
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

export interface SetUse {
  tool: string;
  use: ToolUse;
}

export interface Setting {
  name: string;
  words: string;
  secret?: boolean;
  required?: boolean;
  default?: string;
  server?: boolean;
}

export interface SettlePairing {
  which: string;
  verb: "approve" | "deny";
  for_ms?: number;
}

export interface Settled {
  person?: Person | null;
  pairing?: Pairing | null;
}

export interface Shadow {
  verdict: "allow" | "ask" | "deny";
  reason: string;
  policies?: (string)[];
  policy_version?: string;
}

export interface Shadowed {
  named: string;
  version: string;
  versions: (string)[];
  calls: number;
  same: number;
  denied: Changed;
  allowed: Changed;
  asked: Changed;
}

export interface Shown {
  fingerprint: string;
  subject: string;
  issuer: string;
  names: (string)[];
  begins_ms: number;
  expires_ms: number;
  own: boolean;
}

export interface ShownCall {
  call_id: string;
  tool: string;
  arguments: { [name: string]: unknown };
  outcome?: string;
  text?: string;
  undone?: boolean;
}

export interface ShownCandidate {
  candidate: Candidate;
  would: string;
  diff?: string;
  problem?: string;
  moves?: (string)[];
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

export interface ShownSkill {
  skill: Listed;
  permissions: (string)[];
  tools?: (ToolEntry)[];
  instructions?: string;
}

export interface ShownTurn {
  seq: number;
  who: "model" | "summary" | "user";
  text?: string;
  run_id?: string;
  notes?: (string)[];
  calls?: (ShownCall)[];
}

export interface Side {
  kind: string;
  at?: unknown;
  body?: unknown;
}

export interface Situation {
  id: string;
  words: string;
}

export interface SkillList {
  skills: (Listed)[];
}

export interface SkillSource {
  path: string;
  confirm?: string;
}

export interface SpendingForecast {
  from_ms: number;
  until_ms: number;
  spent_tokens: number;
  spent_microusd: number;
  expected_tokens: number;
  expected_microusd: number;
  a_day_tokens: number;
  a_day_microusd: number;
  unpriced?: number;
  basis?: string;
  low_tokens?: number;
  high_tokens?: number;
  low_microusd?: number;
  high_microusd?: number;
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

export interface StoredBackup {
  name: string;
  bytes: number;
  made_ms: number;
}

export interface StoredCheckpoint {
  size: number;
  time_ms: number;
  note: string;
}

export interface StoredFile {
  artifact: string;
  name: string;
  media_type: string;
  size: number;
  reads_as: "description" | "image" | "text";
  width?: number;
  height?: number;
  characters?: number;
  note?: string;
}

export interface StoredMessage {
  number: number;
  message_id: string;
  connector: string;
  conversation: string;
  thread?: string;
  sender: string;
  state: "answered" | "failed" | "held" | "queued" | "received" | "refused";
  reason?: string;
  principal?: string;
  session_id?: string;
  run_id?: string;
  files?: number;
  received_ms: number;
  ended_ms?: number;
  inbound: Inbound;
}

export interface StreamOptions {
  include_usage?: boolean;
}

export interface Subject {
  tool: string;
  kind: "arguments" | "command" | "host" | "path_prefix" | "program" | "recipient" | "tool";
  value?: string;
}

export interface Submission {
  text: string;
  run_id?: string;
  mode?: "collect" | "followup" | "interrupt" | "steer";
  model?: string;
  attended?: boolean;
  attachments?: (Attaching)[];
  options?: CallOptions;
}

export interface Submitted {
  run_id: string;
  session_id: string;
  submission_id: string;
  state: "accepted" | "cancelled" | "done" | "failed" | "in_progress" | "waiting";
  outcome: "joined" | "queued" | "repeated" | "started";
  seq: number;
}

export interface Suggestion {
  cedar: string;
  permits: (Permit)[];
  left: (Left)[];
  approved: number;
  denied: number;
  already: number;
  passing: number;
}

export interface Task {
  task_id: string;
  kind: string;
  state: "cancelled" | "done" | "expired" | "failed" | "paused" | "queued" | "running";
  payload?: { [name: string]: unknown };
  key?: string;
  priority?: number;
  ready_ms?: number;
  expires_ms?: number;
  attempts?: number;
  max_attempts?: number;
  again?: boolean;
  lease_owner?: string;
  lease_until_ms?: number;
  heartbeat_ms?: number;
  created_ms?: number;
  started_ms?: number;
  ended_ms?: number;
  error?: string;
  principal?: string;
  session_id?: string;
  schedule_id?: string;
}

export interface TaskFinished {
  kind: "task.finished";
  task_id: string;
  task_kind: string;
  outcome: "cancelled" | "done" | "expired" | "failed";
  message?: string;
}

export interface TaskKindList {
  kinds: (KindCount)[];
}

export interface TaskPage {
  tasks: (Task)[];
  next?: string;
}

export interface Terms {
  per?: "all" | "principal" | "run" | "schedule" | "session";
  every?: "day" | "ever" | "month";
  tokens?: number;
  microusd?: number;
  warn_bps?: number;
  then?: "ask" | "block";
  who?: string;
}

export interface TestChannel {
  conversation?: string;
  text?: string;
}

export interface Tested {
  me: Me;
  reply_id?: string;
}

export interface Threshold {
  review_bps: number;
  auto_bps?: number;
}

export interface Thresholds {
  automatic?: boolean;
  fact?: Threshold;
  preference?: Threshold;
  procedure?: Threshold;
  policy?: Threshold;
}

export interface Token {
  token_id: string;
  name: string;
  principal: string;
  scope: "client" | "connector" | "operator" | "owner" | "viewer" | "worker";
  created_ms: number;
  expires_ms?: number;
  used_ms?: number;
  revoked_ms?: number;
  workspace?: string;
}

export interface TokenBill {
  turns: (BilledTurn)[];
}

export interface TokenList {
  tokens: (Token)[];
}

export interface ToolCall {
  id: string;
  function: CalledFunction;
  type?: "function";
  index?: number;
}

export interface ToolCalled {
  id?: string;
  function?: FunctionCalled;
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

export interface ToolEntry {
  name: string;
  description: string;
  module: string;
  effect: "idempotent" | "once" | "pure";
  arguments?: { [name: string]: unknown };
  wants?: Wants;
  limits?: Bounds;
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

export interface ToolRow {
  tool: string;
  effect: string;
  capabilities: (string)[];
  source: string;
  cells: (Cell)[];
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
  use?: ToolUse | null;
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

export interface ToolUse {
  arguments?: (ArgumentUse)[];
  reads_only?: boolean;
  high_impact?: boolean;
  trusted_results?: boolean;
}

export interface Trace {
  message: StoredMessage;
  steps: (MessageStep)[];
  replies: (Reply)[];
}

export interface Trial {
  ok: boolean;
  model: string;
  took_ms: number;
  message: string;
  fix?: string;
  tools?: boolean | null;
  context_tokens?: number;
}

export interface Tried {
  remedy: string;
  result: "begun" | "done" | "failed";
  time_ms: number;
  detail?: string;
}

export interface UnattendedTool {
  tool: string;
  calls: number;
  by_grant: number;
  after_untrusted: number;
  exposed: number;
  example?: string;
  call_id?: string;
}

export interface Uncompacted {
  compactions: (number)[];
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
  cache_write_tokens?: number;
  first_p50_ms?: number;
  first_p95_ms?: number;
  duration_p50_ms?: number;
  duration_p95_ms?: number;
}

export interface Validated {
  ok: boolean;
  problems: (PolicyProblem)[];
  policies: (Rule)[];
}

export interface VaultState {
  state: "empty" | "locked" | "open";
  why: string;
  secrets: (Secret)[];
}

export interface Verified {
  ok: boolean;
  entries: number;
  tapes: number;
  bad: Bad | null;
  pages: (string)[];
  guards: (string)[];
  vouched?: Vouched | null;
  rows?: (WrongRow)[];
}

export interface Vouched {
  size: number;
  time_ms: number;
  by: (string)[];
  newer: number;
  origin?: string;
  checkpoints?: number;
  vouchers?: (Voucher)[];
}

export interface Voucher {
  name: string;
  size?: number;
  time_ms?: number;
}

export interface Wanted {
  form?: "object" | "schema" | "text";
  name?: string;
  schema?: { [name: string]: unknown };
  strict?: boolean;
  call?: string;
  options?: CallOptions;
}

export interface Wants {
  hosts?: (string)[];
  read?: (string)[];
  write?: (string)[];
  secrets?: (string)[];
}

export interface Watching {
  settings: Healing;
  looked_ms: number;
}

export interface WhichCheck {
  id?: string;
}

export interface WhichNotice {
  notice_id?: string;
}

export interface WhoCan {
  principal: string;
  known: (string)[];
  situations: (Situation)[];
  tools: (ToolRow)[];
}

export interface WhyAnswer {
  about: string;
  found: (Cause)[];
  more?: boolean;
}

export interface WorkerDetail {
  worker: WorkerShown;
  recent: (Lease)[];
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

export interface WorkerList {
  workers: (WorkerShown)[];
  port: number;
  hosts: (string)[];
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

export interface WorkerShown {
  name: string;
  state: string;
  connected: boolean;
  address: string;
  version: string;
  platform: string;
  tier: "A" | "B" | "C" | "none";
  tools: (string)[];
  slots: number;
  running: (RunningCall)[];
  enrolled_ms: number;
  seen_ms: number;
  revoked_ms: number;
  fingerprint: string;
  certificate_expires_ms?: number;
}

export interface WrongRow {
  table: string;
  row: string;
  problem: string;
}

export type AnyEvent = RunAccepted | RunStarted | RunResumed | RunWaiting | RunClockChanged | RunCompleted | RunFailed | RunCancelled | InputReceived | InputAssembled | RoutePlanned | ModelReplied | ModelFailed | ModelUsed | ToolProposed | ToolDecided | ToolStarted | ToolFinished | ToolHandedOver | AnswerRefused | PlanDeclared | FilesLabelled | ToolUndone | ApprovalRequested | ApprovalResolved | AgentSpawned | AgentAsked | AgentAnswered | SessionCreated | SessionReset | SessionBranched | SessionCompacted | SessionUncompacted | SessionPinned | SessionRestored | SessionRuled | SessionChanged | CandidateProposed | CandidateSettled | MemoryWritten | MemoryRemoved | MessageReceived | MessageRefused | ReplySent | ReplyAbandoned | IncidentOpened | IncidentTried | IncidentClosed | OwnerNotified | TaskFinished | AdminChanged | AccessRefused | AccessWidened | WorkerJoined | WorkerLeft | WorkerRefused | JournalArchived | JournalRestored | JournalCheckpointed;

export type LiveEvent = ModelDelta | ToolProgress | RetryPlanned | StateChanged;
