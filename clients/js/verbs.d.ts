// Written by scripts/clients.py from the daemon's route table.

import type * as t from "./types.js";

/** One server-sent event. */
export type Message = { event?: string; id?: string; data: string };

export interface Verbs {
  /** The console, or a page that says how to build it. */
  consolePage(): Promise<Blob>;
  /** A file of the console. */
  consoleAsset(asset: string): Promise<Blob>;
  /** The frame without rights in which the console draws diagrams. */
  consoleDiagram(): Promise<Blob>;
  /** The console as an app to install. */
  consoleManifest(): Promise<Blob>;
  /** Keeps the console's own files for when the daemon is away. */
  consoleWorker(): Promise<Blob>;
  /** A page that checks proof bundles in the browser, for anybody. */
  consoleVerifier(): Promise<Blob>;
  /** Whether the process is alive. */
  health(): Promise<t.Health>;
  /** Whether the daemon can do its work. */
  ready(): Promise<t.Ready>;
  /** Open a browser session with a one-time code. */
  login(given: { code: string; }): Promise<void>;
  /** Find a session, or make one. */
  resolveSession(given?: t.Resolve): Promise<t.Session>;
  /** Sessions, last used first. */
  listSessions(given?: { archived?: boolean; before?: string; limit?: number; }): Promise<t.SessionPage>;
  /** One session. */
  getSession(sessionId: string): Promise<t.Session>;
  /** Rename, archive, unarchive. */
  changeSession(sessionId: string, given?: t.SessionChange): Promise<t.Session>;
  /** Start the conversation over; the tape stays. */
  resetSession(sessionId: string): Promise<t.Session>;
  /** A new session that continues from an entry of this one. */
  branchSession(sessionId: string, given?: t.Branch): Promise<t.Session>;
  /** Entries of the tape behind a cursor. */
  listEntries(sessionId: string, given?: { after?: number; limit?: number; }): Promise<t.EntryPage>;
  /** Watch: stored entries behind a cursor, then everything as it happens: the events as they come. */
  sessionEvents(sessionId: string, given?: { after?: number; until?: string; }): AsyncGenerator<Message, void, void>;
  /** Submit an input; a run answers it. */
  submit(sessionId: string, given: t.Submission): Promise<t.Submitted>;
  /** Runs of a session, newest first. */
  listRuns(sessionId: string, given?: { before?: string; limit?: number; }): Promise<t.RunPage>;
  /** A large result, as it was stored. */
  getArtifact(sessionId: string, artifactId: string, given?: { name?: string; }): Promise<Blob>;
  /** Watch all of the caller's sessions, and that something else has changed: the events as they come. */
  allEvents(given?: { after?: number; }): AsyncGenerator<Message, void, void>;
  /** Runs of all sessions of the caller, newest first. */
  recentRuns(given?: { before?: string; limit?: number; }): Promise<t.RunPage>;
  /** One run. */
  getRun(runId: string): Promise<t.RunRow>;
  /** What the prompts of a run were made of. */
  runTokens(runId: string): Promise<t.TokenBill>;
  /** End a run, in whatever state it is. */
  cancel(runId: string, given?: t.Cancel): Promise<t.RunRow>;
  /** Ask again now for a run that waits for its provider, with another model if named. */
  retry(runId: string, given?: t.Retry): Promise<t.RunRow>;
  /** STOP: end everything that runs or waits. */
  stop(): Promise<t.Stopped>;
  /** Pending approvals, and answered ones. */
  listApprovals(given?: { pending?: "any" | "false" | "true"; before?: string; limit?: number; }): Promise<t.ApprovalPage>;
  /** One approval. */
  getApproval(approvalId: string): Promise<t.Approval>;
  /** All of what a pending call would do, as proposed or with edited arguments. */
  previewApproval(approvalId: string, given?: t.ApprovalDraft): Promise<t.ApprovalPreview>;
  /** Answer; the first answer wins. */
  answer(approvalId: string, given: t.Answer): Promise<t.Approval>;
  /** What a wider approval would have let run in the recorded past. */
  pastOfApproval(approvalId: string, given?: { subject?: number; days?: number; }): Promise<t.PastCalls>;
  /** The pending lines of the question that an approval belongs to. */
  getApprovalGroup(approvalId: string): Promise<t.ApprovalGroup>;
  /** Answer all lines of a question together, each allowed or denied. */
  answerGroup(approvalId: string, given: t.GroupAnswer): Promise<t.AnsweredGroup>;
  /** What was allowed more widely than once. */
  listGrants(): Promise<t.GrantList>;
  /** Take such a permission back. */
  removeGrant(approvalId: string): Promise<void>;
  /** One entry by its place in the journal. */
  getEntry(position: number): Promise<t.Entry>;
  /** Check every entry; names the first bad one. */
  verifyJournal(given?: { deep?: boolean; }): Promise<t.Verified>;
  /** Check every entry; names the first bad one: the events as they come. */
  verifyJournalEvents(given?: { deep?: boolean; }): AsyncGenerator<Message, void, void>;
  /** Entries, one a line. */
  exportJournal(given?: { session_id?: string; after?: number; }): Promise<Blob>;
  /** A verified copy in the backups folder, or in another one. */
  backUpJournal(given?: t.Backup): Promise<t.BackedUp>;
  /** The copies in the backups folder, newest first. */
  listBackups(): Promise<t.BackupList>;
  /** One of them, as it is. */
  downloadBackup(backup: string): Promise<Blob>;
  /** Metrics as Prometheus text. */
  metrics(): Promise<Blob>;
  /** What the daemon is and does. */
  status(): Promise<t.Status>;
  /** Tools the agent has. */
  listTools(): Promise<t.ToolList>;
  /** The policies in force. */
  getPolicy(): Promise<t.PolicyInForce>;
  /** How a call would be decided, and why. */
  explainPolicy(given: t.Explain): Promise<t.Explanation>;
  /** Read the policy folder again. */
  reloadPolicy(): Promise<t.Reloaded>;
  /** Read the config file again and apply what can be applied. */
  reloadConfig(): Promise<t.ConfigReloaded>;
  /** Tokens, also revoked ones. */
  listTokens(): Promise<t.TokenList>;
  /** Make a token. */
  createToken(given: t.NewToken): Promise<t.MadeToken>;
  /** Revoke a token, at once. */
  revokeToken(tokenId: string): Promise<t.Token>;
  /** A link that logs a browser in, once, within ten minutes. */
  createLoginLink(): Promise<t.LoginLink>;
  /** End the browser's session. */
  logout(): Promise<void>;
  /** Decide every recorded call again under other policies. */
  testPolicy(given?: { preset?: string; folder?: string; since_ms?: number; }): Promise<t.Report>;
  /** Decide every recorded call again under other policies: the events as they come. */
  testPolicyEvents(given?: { preset?: string; folder?: string; since_ms?: number; }): AsyncGenerator<Message, void, void>;
  /** Permits that would have spared approvals. */
  suggestPolicy(given?: { since_ms?: number; }): Promise<t.Suggestion>;
  /** What the shadow policies would have decided otherwise. */
  shadowPolicy(given?: { since_ms?: number; }): Promise<t.Shadowed>;
  /** How a recorded call was decided, and how it would be now. */
  explainCall(given: { call_id: string; }): Promise<t.ExplainedCall>;
  /** The policy files, with their texts. */
  listPolicyFiles(): Promise<t.PolicyFiles>;
  /** Save a policy file, if everything loads with it. */
  savePolicyFile(given: t.SavedFile): Promise<t.Saved>;
  /** Remove a policy file, if everything loads without it. */
  removePolicyFile(given: { name: string; was: string; }): Promise<t.Saved>;
  /** Whether a text would load as a policy file; nothing is saved. */
  validatePolicy(given: t.PolicyDraft): Promise<t.Validated>;
  /** Decide every recorded call again with a text that is not saved. */
  testPolicyDraft(given?: t.DraftTest): Promise<t.Report>;
  /** Decide every recorded call again with a text that is not saved: the events as they come. */
  testPolicyDraftEvents(given?: t.DraftTest): AsyncGenerator<Message, void, void>;
  /** Who can do what: every tool in a few plain situations. */
  whoCan(given?: { principal?: string; origin?: "api" | "channel" | "child" | "interactive" | "scheduled"; }): Promise<t.WhoCan>;
  /** The rules of a session. */
  listRules(sessionId: string): Promise<t.RuleList>;
  /** Add a rule, in plain words. */
  addRule(sessionId: string, given: t.NewRule): Promise<t.ShownRule>;
  /** Remove a rule. */
  removeRule(sessionId: string, given: { rule_id: string; }): Promise<t.ShownRule>;
  /** End at once, as in a power cut, and start again; what runs goes on. */
  restart(given: t.Restart): Promise<t.Nothing>;
  /** What secrets there are; never their values. */
  listSecrets(): Promise<t.VaultState>;
  /** Store a secret, also in place of the one that has its name. */
  putSecret(given: t.NewSecret): Promise<t.Secret>;
  /** Remove a secret. */
  removeSecret(given: { name: string; scope?: string; }): Promise<void>;
  /** Give a secret another value. */
  rotateSecret(given: t.NewValue): Promise<t.Secret>;
  /** Re-encrypt every secret under a new master key. */
  rotateVaultKey(): Promise<t.KeyRotated>;
  /** The newest signed checkpoint, and the keys that sign. */
  getCheckpoint(): Promise<t.CheckpointState>;
  /** Sign a checkpoint over the journal as it is now. */
  makeCheckpoint(): Promise<t.StoredCheckpoint>;
  /** Prove that an entry stands in the journal at its position. */
  proveEntry(position: number, given?: { size?: number; }): Promise<t.InclusionProof>;
  /** Prove that the journal has only grown between two sizes. */
  proveConsistency(given: { old: number; size?: number; }): Promise<t.ConsistencyProof>;
  /** Entries with their proofs, for somebody without the product. */
  exportProof(given?: { session_id?: string; run_id?: string; first?: number; last?: number; bodies?: boolean; without?: string; }): Promise<t.ProofBundle>;
  /** Replace the key that signs checkpoints. */
  rotateJournalKey(): Promise<t.RotatedKey>;
  /** Cosign a checkpoint of a journal that this daemon is a witness of (C2SP). */
  cosignCheckpoint(data: BodyInit): Promise<void>;
  /** Where the daemon listens, and its certificates. */
  tlsStatus(): Promise<t.Listening>;
  /** A new certificate, or your own files read again. */
  renewCertificate(): Promise<t.Shown>;
  /** The certificate of the daemon's own authority, for others to trust. */
  getCertificateAuthority(): Promise<Blob>;
  /** Revoke a worker's certificate, at once. */
  revokeWorkerCertificate(fingerprint: string): Promise<t.Certificate>;
  /** Background tasks, newest first. */
  listTasks(given?: { kind?: string; state?: "" | "cancelled" | "done" | "expired" | "failed" | "paused" | "queued" | "running"; before?: string; limit?: number; }): Promise<t.TaskPage>;
  /** Kinds of tasks, and how many are in which state. */
  listTaskKinds(): Promise<t.TaskKindList>;
  /** Begin no more tasks of a kind, or begin them again. */
  changeTaskKind(taskKind: string, given: t.ChangeKind): Promise<t.KindCount>;
  /** One task. */
  getTask(taskId: string): Promise<t.Task>;
  /** Pause, resume, retry or cancel a task. */
  changeTask(taskId: string, given: t.ChangeTask): Promise<t.Task>;
  /** What models were asked, and what it cost. */
  usage(given?: { by?: "call" | "day" | "hour" | "model" | "month" | "origin" | "principal" | "run" | "schedule" | "session" | "task"; since_ms?: number; until_ms?: number; session_id?: string; run_id?: string; schedule_id?: string; everybody?: boolean; limit?: number; }): Promise<t.UsageList>;
  /** What the month will have cost, by the trend. */
  forecastUsage(given?: { everybody?: boolean; }): Promise<t.SpendingForecast>;
  /** What so many firings of a schedule will use. */
  forecastSchedule(given?: { schedule_id?: string; times?: number; }): Promise<t.RunForecast>;
  /** Who was asked in a run, why, and what came of it. */
  listRunPlans(runId: string): Promise<t.RunPlans>;
  /** Limits on what models may cost, and what is left of them. */
  listBudgets(): Promise<t.BudgetList>;
  /** Set a limit, also in place of the one that has its name. */
  putBudget(budget: string, given?: t.Terms): Promise<t.Limit>;
  /** Remove a limit. */
  removeBudget(budget: string): Promise<void>;
  /** Store a file that a message can then have as an attachment. */
  storeFile(sessionId: string, data: BodyInit, given: { name: string; }): Promise<t.StoredFile>;
  /** What the references of a message would bring. */
  previewReferences(sessionId: string, given: t.MessageDraft): Promise<t.ReferencesPreview>;
  /** Paths of the workspace that begin so, for completing a reference. */
  listPaths(sessionId: string, given?: { prefix?: string; limit?: number; }): Promise<t.PathList>;
  /** The agent answers a chat, for programs that know OpenAI's. */
  createChatCompletion(given: t.ChatRequest): Promise<t.ChatCompletion>;
  /** The agent answers a chat, for programs that know OpenAI's: the events as they come. */
  createChatCompletionEvents(given: t.ChatRequest): AsyncGenerator<Message, void, void>;
  /** The same as a response that the next one can name. */
  createResponse(given: t.ResponseRequest): Promise<t.Response>;
  /** The same as a response that the next one can name: the events as they come. */
  createResponseEvents(given: t.ResponseRequest): AsyncGenerator<Message, void, void>;
  /** A response that was given before, as far as it has come. */
  getResponse(response: string): Promise<t.Response>;
  /** Cancel the run that is working on a response. */
  cancelResponse(response: string): Promise<t.Response>;
  /** Put the session of a response away, if it has no other. */
  deleteResponse(response: string): Promise<t.Deleted>;
  /** What a response answered. */
  listResponseItems(response: string, given?: { order?: "asc" | "desc"; limit?: number; after?: string; }): Promise<t.ItemList>;
  /** A conversation that responses can name: a session. */
  createConversation(given?: t.ConversationRequest): Promise<t.ApiConversation>;
  /** One of them. */
  getConversation(conversation: string): Promise<t.ApiConversation>;
  /** Archive the session of a conversation. */
  deleteConversation(conversation: string): Promise<t.DeletedConversation>;
  /** What was said in a conversation. */
  listConversationItems(conversation: string, given?: { order?: "asc" | "desc"; limit?: number; after?: string; }): Promise<t.ItemList>;
  /** Models that can be asked for. */
  listModels(): Promise<t.ModelList>;
  /** One of them. */
  getModel(model: string): Promise<t.OpenAIModel>;
  /** Texts as vectors, by the daemon's own embedding model. */
  createEmbeddings(given: t.EmbeddingRequest): Promise<t.EmbeddingList>;
  /** What is remembered, newest first. */
  listMemory(given?: { state?: "active" | "all" | "forgotten" | "rejected" | "review" | "superseded"; before?: string; limit?: number; }): Promise<t.ItemPage>;
  /** Remember something. */
  addMemory(given: t.Adding): Promise<t.Item>;
  /** Search by words and meaning, with explained scores. */
  searchMemory(given: { text: string; session_id?: string; limit?: number; }): Promise<t.Searched>;
  /** How much is remembered, and how it is searched. */
  memoryStatus(): Promise<t.MemoryStatus>;
  /** Everything, also history, one item a line. */
  exportMemory(): Promise<Blob>;
  /** Remember many at once. */
  importMemory(given?: t.Import): Promise<t.Imported>;
  /** Remove items permanently, with all their versions. */
  purgeMemory(given?: t.Purge): Promise<t.Purged>;
  /** One item. */
  getMemory(memoryId: string): Promise<t.Item>;
  /** Correct or pin an item. */
  changeMemory(memoryId: string, given?: t.MemoryChange): Promise<t.Item>;
  /** Forget an item; it can be brought back until it is purged. */
  forgetMemory(memoryId: string): Promise<t.Item>;
  /** All versions of what an item says, newest first. */
  memoryHistory(memoryId: string): Promise<t.ItemPage>;
  /** Accept or reject an item that needs review, or was forgotten. */
  reviewMemory(memoryId: string, given: t.Review): Promise<t.Item>;
  /** What was said in sessions, by words and meaning. */
  searchSessions(given: { q: string; semantic?: boolean; limit?: number; }): Promise<t.SaidPage>;
  /** MCP servers: their state, their tools, what needs to be accepted. */
  listMcpServers(): Promise<t.ServerList>;
  /** Offer what a server says of its tools now. */
  acceptMcpServer(server: string, given: t.Accept): Promise<t.ServerStatus>;
  /** Say what the arguments of an accepted tool are for. */
  setMcpArguments(server: string, given: t.SetUse): Promise<t.ServerStatus>;
  /** Restart a server. */
  restartMcpServer(server: string): Promise<t.ServerStatus>;
  /** Installed skills. */
  listSkills(): Promise<t.SkillList>;
  /** Install or update a skill from a folder or zip file on the daemon's machine. */
  installSkill(given: t.SkillSource): Promise<t.Proposal | t.ShownSkill>;
  /** Install or update a skill from a zip file that is sent. */
  installSkillArchive(data: BodyInit, given?: { confirm?: string; }): Promise<t.Proposal | t.ShownSkill>;
  /** One skill: what it may do, its tools, its instructions. */
  getSkill(skill: string): Promise<t.ShownSkill>;
  /** Remove a skill. */
  removeSkill(skill: string): Promise<void>;
  /** Put a skill in quarantine, enable it or trust it. */
  setSkillState(skill: string, given: t.NewSkillState): Promise<t.ShownSkill>;
  /** The skill as a zip file. */
  exportSkill(skill: string): Promise<Blob>;
  /** Whose signed skills are trusted. */
  listPublishers(): Promise<t.PublisherList>;
  /** Trust the signed skills of a publisher. */
  addPublisher(given: t.NewPublisher): Promise<t.Publisher>;
  /** Trust a publisher no longer; their skills go back into quarantine. */
  removePublisher(given: { name: string; }): Promise<void>;
  /** Workers on other machines, and what runs there. */
  listWorkers(): Promise<t.WorkerList>;
  /** A one-time code by which a machine becomes a worker. */
  enrolWorker(given: t.EnrolWorker): Promise<t.Enrolment>;
  /** One worker, with the calls that it was given last. */
  getWorker(worker: string): Promise<t.WorkerDetail>;
  /** Give it nothing new, or use it again. */
  drainWorker(worker: string, given?: t.DrainWorker): Promise<t.WorkerShown>;
  /** Revoke a worker: its certificate is no longer good. */
  revokeWorker(worker: string): Promise<t.WorkerShown>;
  /** Notes for agents: what they say, and what has changed since they were accepted. */
  listNotes(given?: { session_id?: string | null; workspace?: string | null; }): Promise<t.NoteList>;
  /** Accept the content of a note that was shown. */
  acceptNote(given: t.AcceptNote): Promise<t.Note>;
  /** Reject a note that was accepted; runs go without it. */
  rejectNote(given: { workspace: string; file: string; }): Promise<void>;
  /** Model providers: where they are, what they offer, where their keys are. */
  listProviders(): Promise<t.ProviderList>;
  /** Add or change a provider, at once. */
  saveProvider(given: t.NewProvider): Promise<t.ProviderList>;
  /** Remove a provider, at once; runs that began with it end with it. */
  removeProvider(given: { name: string; }): Promise<t.ProviderList>;
  /** One tiny request with a tool to a provider, saved or not. */
  testProvider(given: t.NewProvider): Promise<t.Trial>;
  /** Providers that could be set up: servers on this machine, keys in the environment. */
  findProviders(): Promise<t.FoundProviders>;
  /** The models that a provider says it has, saved or not. */
  listProviderModels(given: t.NewProvider): Promise<t.FoundProvider>;
  /** Choose the model that is used first, at once. */
  setDefaultModel(given: t.DefaultModel): Promise<t.ProviderList>;
  /** Change settings of learning, healing or backups, at once and permanently. */
  changeConfig(given: t.ConfigChanges): Promise<t.ConfigReloaded>;
  /** Open, close or move listeners, at once. */
  changeListeners(given?: t.ListenerChanges): Promise<t.ConfigReloaded>;
  /** Add an MCP server or change its settings, at once. */
  saveMcpServer(given: t.NewMcpServer): Promise<t.SavedMcpServer>;
  /** Enable or disable an MCP server, at once. */
  changeMcpServer(server: string, given: t.McpServerChange): Promise<t.SavedMcpServer>;
  /** Remove an MCP server, at once; its folder and what was accepted stay. */
  removeMcpServer(server: string): Promise<t.SavedMcpServer>;
  /** Try policies beside those in force, at once; their decisions are only recorded. */
  useShadowPolicy(given: t.NewShadow): Promise<t.PolicyState>;
  /** Go over to another preset, at once. */
  setPreset(given: t.NewPreset): Promise<t.PolicyState>;
  /** A session as it was after an entry, and what came since. */
  sessionAt(sessionId: string, seq: number, given?: { turns?: number; }): Promise<t.Moment>;
  /** Take files and conversation back to an entry, or preview it. */
  rewindSession(sessionId: string, given: t.Rewind): Promise<t.Rewound>;
  /** Undo effects. */
  undo(sessionId: string, given?: t.Undo): Promise<t.Undone>;
  /** Run the loop again over a recorded run, without any effect. */
  replayRun(runId: string): Promise<t.RunReplay>;
  /** How far the replay of a run is, and where it differs. */
  getReplay(runId: string, given?: { wait_ms?: number; }): Promise<t.RunReplay>;
  /** Take a run up again from an entry, live, with another model or policies. */
  forkRun(runId: string, given?: t.Fork): Promise<t.Forked>;
  /** The causes of an entry, a file, a message or a cost, as a tree. */
  why(given: { about: string; limit?: number; }): Promise<t.WhyAnswer>;
  /** Questions, unattended calls, repeated answers and instruction-like sources. */
  securityScore(given?: { since_ms?: number; }): Promise<t.SecurityScore>;
  /** Files that were written after untrusted content was read. */
  listLabelledFiles(given?: { after?: string; limit?: number; }): Promise<t.LabelledFiles>;
  /** Take the label of a file or a folder away. */
  clearFileLabel(given: t.ClearLabel): Promise<t.LabelledFiles>;
  /** Nodes of the journal, the one that leads first. */
  listNodes(): Promise<t.NodeList>;
  /** Have the node that leads hand over between two steps. */
  drainNode(given?: t.DrainNode): Promise<t.NodeInfo>;
  /** The subagents that work or worked for a session, as a tree. */
  listAgents(sessionId: string): Promise<t.Agents>;
  /** Seal sessions that were not used for long, or list them. */
  archiveOldSessions(given?: t.ArchiveOld): Promise<t.Archived>;
  /** Remove artifacts that nothing names, and look after the database file. */
  cleanJournal(given?: t.Clean): Promise<t.CleanedUp>;
  /** The segments that hold sealed sessions. */
  listSegments(): Promise<t.SegmentList>;
  /** Take a session out of the journal, the lists and search; a sealed copy proves it. */
  deleteSession(sessionId: string): Promise<t.DeletedSession>;
  /** Restore a sealed session. */
  restoreSession(sessionId: string): Promise<t.Session>;
  /** The backups of the home at their target, and how the last ones went. */
  listHomeBackups(): Promise<t.HomeBackupList>;
  /** Make a backup of the home now. */
  makeBackup(): Promise<t.MadeBackup>;
  /** Restore a backup into a scratch home and verify it. */
  checkBackup(given?: t.CheckBackup): Promise<t.CheckedBackup>;
  /** Condense the older turns of a session, or say what that would be. */
  compactSession(sessionId: string, given?: t.Compact): Promise<t.Compaction>;
  /** The compactions of a session, oldest first. */
  listCompactions(sessionId: string): Promise<t.CompactionPage>;
  /** Undo a compaction and those built on it. */
  undoCompaction(sessionId: string, seq: number): Promise<t.Uncompacted>;
  /** Keep an exchange whole in every compaction, or no longer. */
  pinEntry(sessionId: string, given: t.Pin): Promise<t.Pinned>;
  /** What was learned and waits, or is in a state; newest first. */
  listCandidates(given?: { state?: "proposed" | "accepted" | "applied" | "conflicted" | "pending_review" | "rejected" | "rolled_back" | "suppressed" | "all" | "waiting"; kind?: "fact" | "policy" | "preference" | "procedure" | "any"; before?: string; limit?: number; }): Promise<t.CandidateList>;
  /** Thresholds, cooldown and who reads. */
  learningSettings(): Promise<t.LearningSettings>;
  /** One candidate: evidence, and what accepting would do. */
  getCandidate(candidateId: string): Promise<t.ShownCandidate>;
  /** Accept it, which does it. */
  acceptCandidate(candidateId: string, given?: t.Accepting): Promise<t.Candidate>;
  /** Reject it permanently. */
  rejectCandidate(candidateId: string, given?: t.Rejecting): Promise<t.Candidate>;
  /** Roll back what was applied. */
  rollBackCandidate(candidateId: string): Promise<t.Candidate>;
  /** Look now for what can be learned from a run. */
  reflectOnRun(runId: string): Promise<t.Reflected>;
  /** Schedules, with their next times and what they may cost. */
  listSchedules(): Promise<t.ScheduleList>;
  /** Save a schedule; a webhook's secret is shown this once. */
  addSchedule(given: t.NewSchedule): Promise<t.ShownSchedule>;
  /** What a schedule would be, saving nothing. */
  previewSchedule(given: t.NewSchedule): Promise<t.ShownSchedule>;
  /** One schedule, with what became of its last firings. */
  getSchedule(scheduleId: string): Promise<t.ShownSchedule>;
  /** Give a schedule other words, times or rules; it keeps its history. */
  changeSchedule(scheduleId: string, given: t.NewSchedule): Promise<t.ShownSchedule>;
  /** Remove a schedule; runs that are under way go on. */
  removeSchedule(scheduleId: string): Promise<t.Schedule>;
  /** Do not fire until it is resumed. */
  pauseSchedule(scheduleId: string): Promise<t.ShownSchedule>;
  /** Fire again from now on. */
  resumeSchedule(scheduleId: string): Promise<t.ShownSchedule>;
  /** Fire now. */
  runSchedule(scheduleId: string): Promise<t.Firing>;
  /** Call a webhook, signed. */
  callScheduleHook(scheduleId: string, data: BodyInit): Promise<t.Called>;
  /** Channels: their connections, rules and counts. */
  listChannels(): Promise<t.ChannelList>;
  /** Add a channel, or change its settings; secrets go into the vault. */
  saveChannel(given: t.NewChannel): Promise<t.ChannelStatus>;
  /** Remove a channel; what was said there stays. */
  removeChannel(channel: string): Promise<t.ChannelList>;
  /** Kinds of channels and what each needs. */
  listChannelKinds(): Promise<t.ConnectorKindList>;
  /** Messages that came in, newest first. */
  listChannelMessages(given?: { channel?: string; state?: "" | "answered" | "failed" | "held" | "queued" | "received" | "refused"; before?: number; limit?: number; }): Promise<t.MessagePage>;
  /** What happened to a message, step by step. */
  traceMessage(given: { of: string; }): Promise<t.Trace>;
  /** Replies that could not be delivered. */
  listDeadLetters(given?: { channel?: string; }): Promise<t.DeadLetters>;
  /** Send such a reply again. */
  replayDeadLetter(replyId: string): Promise<t.DeadLetters>;
  /** Give such a reply up. */
  dropDeadLetter(replyId: string): Promise<t.DeadLetters>;
  /** Who waits to be admitted. */
  listPairings(): Promise<t.PairingList>;
  /** Admit somebody, or do not. */
  settlePairing(given: t.SettlePairing): Promise<t.Settled>;
  /** A code that admits the first person who sends it. */
  invite(given: t.Invite): Promise<t.Invitation>;
  /** Who has written, who is paired, whose identity they are. */
  listPeople(given?: { channel?: string; }): Promise<t.People>;
  /** Take a pairing back, or link an identity to a user. */
  changePerson(given: t.ChangePerson): Promise<t.Person>;
  /** Hand an approval on to somebody else. */
  routeApproval(approvalId: string, given?: t.RouteApproval): Promise<t.Approval>;
  /** Refuse everything on all channels, or go on. */
  pauseChannels(given: t.Pause): Promise<t.ChannelList>;
  /** One channel. */
  getChannel(channel: string): Promise<t.ChannelStatus>;
  /** Pause, resume or reconnect a channel. */
  changeChannel(channel: string, given: t.ChangeChannel): Promise<t.ChannelStatus>;
  /** Change rules, from now on. */
  changeChannelRules(channel: string, given: t.ChangeRules): Promise<t.ChannelStatus>;
  /** What would become of a message, doing nothing. */
  previewChannelMessage(channel: string, given: t.PreviewMessage): Promise<t.RoutingPreview>;
  /** Ask the platform who we are; send a test message. */
  testChannel(channel: string, given?: t.TestChannel): Promise<t.Tested>;
  /** The door for a platform that calls; its connector checks who it is. */
  callChannelHook(channel: string, data: BodyInit): Promise<void>;
  /** What is well and what is not, with a fix for each. */
  diagnose(given?: { deep?: boolean; }): Promise<t.Diagnosis>;
  /** Repair one check, or all that can be. */
  repair(given?: t.WhichCheck): Promise<t.Repaired>;
  /** How watchful the daemon is, and when it looked last. */
  watchdogStatus(): Promise<t.Watching>;
  /** Processor, memory, disk, queue and journal over the last hours. */
  loadHistory(): Promise<t.Load>;
  /** What went wrong with the daemon, and what was tried. */
  listIncidents(given?: { open?: boolean | null; before?: string; limit?: number; }): Promise<t.IncidentList>;
  /** One incident. */
  getIncident(incidentId: string): Promise<t.Incident>;
  /** What the caller was told without asking, newest first. */
  listNotices(given?: { unread?: boolean | null; before?: string; limit?: number; }): Promise<t.NoticeList>;
  /** Mark one notice as read, or all. */
  readNotices(given?: t.WhichNotice): Promise<t.MarkedRead>;
  /** MCP: one message of a client (streamable HTTP). */
  sendMcp(data: BodyInit): Promise<t.RpcAnswer>;
  /** MCP: take up a stream that broke: the events as they come. */
  mcpEvents(): AsyncGenerator<Message, void, void>;
  /** MCP: end a session; its runs go on. */
  endMcpSession(): Promise<void>;
}

export declare const VERBS: { [name in keyof Verbs]: [string, string, string?, string?] };
