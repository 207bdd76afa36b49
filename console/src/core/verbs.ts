// Written by scripts/clients.py from the daemon's route table.

import type * as t from "../types";
import { ask, part, send, withQuery } from "./api";

/** The console, or a page that says how to build it. */
export const consolePagePath = () => `/`;
/** A file of the console. */
export const consoleAssetPath = (asset: string) => `/assets/${part(asset)}`;
/** The frame without rights in which the console draws diagrams. */
export const consoleDiagramPath = () => `/diagram.html`;
/** The console as an app to install. */
export const consoleManifestPath = () => `/manifest.webmanifest`;
/** Keeps the console's own files for when the daemon is away. */
export const consoleWorkerPath = () => `/worker.js`;
/** A page that checks proof bundles in the browser, for anybody. */
export const consoleVerifierPath = () => `/verify`;
/** Whether the process is alive. */
export const health = () => ask<t.Health>("GET", `/healthz`);
/** Whether the daemon can do its work. */
export const ready = () => ask<t.Ready>("GET", `/readyz`);
/** Open a browser session with a one-time code. */
export const login = (given: { code: string; }) => ask<void>("GET", `/login`, given);
/** Find a session, or make one. */
export const resolveSession = (given?: t.Resolve) => ask<t.Session>("POST", `/v1/sessions`, given);
/** Sessions, last used first. */
export const listSessions = (given?: { archived?: boolean; before?: string; limit?: number; }) => ask<t.SessionPage>("GET", `/v1/sessions`, given);
/** One session. */
export const getSession = (sessionId: string) => ask<t.Session>("GET", `/v1/sessions/${part(sessionId)}`);
/** Rename, archive, unarchive. */
export const changeSession = (sessionId: string, given?: t.SessionChange) => ask<t.Session>("PATCH", `/v1/sessions/${part(sessionId)}`, given);
/** Start the conversation over; the tape stays. */
export const resetSession = (sessionId: string) => ask<t.Session>("POST", `/v1/sessions/${part(sessionId)}/reset`);
/** A new session that continues from an entry of this one. */
export const branchSession = (sessionId: string, given?: t.Branch) => ask<t.Session>("POST", `/v1/sessions/${part(sessionId)}/branch`, given);
/** Entries of the tape behind a cursor. */
export const listEntries = (sessionId: string, given?: { after?: number; limit?: number; }) => ask<t.EntryPage>("GET", `/v1/sessions/${part(sessionId)}/entries`, given);
/** Watch: stored entries behind a cursor, then everything as it happens. */
export const sessionEventsPath = (sessionId: string, given?: { after?: number; until?: string; }) => withQuery(`/v1/sessions/${part(sessionId)}/events`, given);
/** Submit an input; a run answers it. */
export const submit = (sessionId: string, given: t.Submission) => ask<t.Submitted>("POST", `/v1/sessions/${part(sessionId)}/messages`, given);
/** Runs of a session, newest first. */
export const listRuns = (sessionId: string, given?: { before?: string; limit?: number; }) => ask<t.RunPage>("GET", `/v1/sessions/${part(sessionId)}/runs`, given);
/** A large result, as it was stored. */
export const getArtifactPath = (sessionId: string, artifactId: string, given?: { name?: string; }) => withQuery(`/v1/sessions/${part(sessionId)}/artifacts/${part(artifactId)}`, given);
/** Watch all of the caller's sessions, and that something else has changed. */
export const allEventsPath = (given?: { after?: number; }) => withQuery(`/v1/events`, given);
/** Runs of all sessions of the caller, newest first. */
export const recentRuns = (given?: { before?: string; limit?: number; }) => ask<t.RunPage>("GET", `/v1/runs`, given);
/** One run. */
export const getRun = (runId: string) => ask<t.RunRow>("GET", `/v1/runs/${part(runId)}`);
/** What the prompts of a run were made of. */
export const runTokens = (runId: string) => ask<t.TokenBill>("GET", `/v1/runs/${part(runId)}/tokens`);
/** End a run, in whatever state it is. */
export const cancel = (runId: string, given?: t.Cancel) => ask<t.RunRow>("POST", `/v1/runs/${part(runId)}/cancel`, given);
/** Ask again now for a run that waits for its provider, with another model if named. */
export const retry = (runId: string, given?: t.Retry) => ask<t.RunRow>("POST", `/v1/runs/${part(runId)}/retry`, given);
/** STOP: end everything that runs or waits. */
export const stop = () => ask<t.Stopped>("POST", `/v1/stop`);
/** Pending approvals, and answered ones. */
export const listApprovals = (given?: { pending?: "any" | "false" | "true"; before?: string; limit?: number; }) => ask<t.ApprovalPage>("GET", `/v1/approvals`, given);
/** One approval. */
export const getApproval = (approvalId: string) => ask<t.Approval>("GET", `/v1/approvals/${part(approvalId)}`);
/** All of what a pending call would do, as proposed or with edited arguments. */
export const previewApproval = (approvalId: string, given?: t.ApprovalDraft) => ask<t.ApprovalPreview>("POST", `/v1/approvals/${part(approvalId)}/preview`, given);
/** Answer; the first answer wins. */
export const answer = (approvalId: string, given: t.Answer) => ask<t.Approval>("POST", `/v1/approvals/${part(approvalId)}/answer`, given);
/** What a wider approval would have let run in the recorded past. */
export const pastOfApproval = (approvalId: string, given?: { subject?: number; days?: number; }) => ask<t.PastCalls>("GET", `/v1/approvals/${part(approvalId)}/past`, given);
/** The pending lines of the question that an approval belongs to. */
export const getApprovalGroup = (approvalId: string) => ask<t.ApprovalGroup>("GET", `/v1/approvals/${part(approvalId)}/group`);
/** Answer all lines of a question together, each allowed or denied. */
export const answerGroup = (approvalId: string, given: t.GroupAnswer) => ask<t.AnsweredGroup>("POST", `/v1/approvals/${part(approvalId)}/group/answer`, given);
/** What was allowed more widely than once. */
export const listGrants = () => ask<t.GrantList>("GET", `/v1/grants`);
/** Take such a permission back. */
export const removeGrant = (approvalId: string) => ask<void>("DELETE", `/v1/grants/${part(approvalId)}`);
/** One entry by its place in the journal. */
export const getEntry = (position: number) => ask<t.Entry>("GET", `/v1/journal/entries/${part(position)}`);
/** Check every entry; names the first bad one. */
export const verifyJournal = (given?: { deep?: boolean; }) => ask<t.Verified>("GET", `/v1/journal/verify`, given);
/** Check every entry; names the first bad one. */
export const verifyJournalEventsPath = (given?: { deep?: boolean; }) => withQuery(`/v1/journal/verify`, given);
/** Entries, one a line. */
export const exportJournalPath = (given?: { session_id?: string; after?: number; }) => withQuery(`/v1/journal/export`, given);
/** A verified copy in the backups folder, or in another one. */
export const backUpJournal = (given?: t.Backup) => ask<t.BackedUp>("POST", `/v1/journal/backup`, given);
/** The copies in the backups folder, newest first. */
export const listBackups = () => ask<t.BackupList>("GET", `/v1/journal/backups`);
/** One of them, as it is. */
export const downloadBackupPath = (backup: string) => `/v1/journal/backups/${part(backup)}`;
/** Metrics as Prometheus text. */
export const metricsPath = () => `/metrics`;
/** What the daemon is and does. */
export const status = () => ask<t.Status>("GET", `/v1/status`);
/** Tools the agent has. */
export const listTools = () => ask<t.ToolList>("GET", `/v1/tools`);
/** The policies in force. */
export const getPolicy = () => ask<t.PolicyInForce>("GET", `/v1/policy`);
/** How a call would be decided, and why. */
export const explainPolicy = (given: t.Explain) => ask<t.Explanation>("POST", `/v1/policy/explain`, given);
/** Read the policy folder again. */
export const reloadPolicy = () => ask<t.Reloaded>("POST", `/v1/policy/reload`);
/** Read the config file again and apply what can be applied. */
export const reloadConfig = () => ask<t.ConfigReloaded>("POST", `/v1/config/reload`);
/** Tokens, also revoked ones. */
export const listTokens = () => ask<t.TokenList>("GET", `/v1/tokens`);
/** Make a token. */
export const createToken = (given: t.NewToken) => ask<t.MadeToken>("POST", `/v1/tokens`, given);
/** Revoke a token, at once. */
export const revokeToken = (tokenId: string) => ask<t.Token>("DELETE", `/v1/tokens/${part(tokenId)}`);
/** A link that logs a browser in, once, within ten minutes. */
export const createLoginLink = () => ask<t.LoginLink>("POST", `/v1/login-links`);
/** End the browser's session. */
export const logout = () => ask<void>("POST", `/v1/logout`);
/** Decide every recorded call again under other policies. */
export const testPolicy = (given?: { preset?: string; folder?: string; since_ms?: number; }) => ask<t.Report>("GET", `/v1/policy/test`, given);
/** Decide every recorded call again under other policies. */
export const testPolicyEventsPath = (given?: { preset?: string; folder?: string; since_ms?: number; }) => withQuery(`/v1/policy/test`, given);
/** Permits that would have spared approvals. */
export const suggestPolicy = (given?: { since_ms?: number; }) => ask<t.Suggestion>("GET", `/v1/policy/suggest`, given);
/** What the shadow policies would have decided otherwise. */
export const shadowPolicy = (given?: { since_ms?: number; }) => ask<t.Shadowed>("GET", `/v1/policy/shadow`, given);
/** How a recorded call was decided, and how it would be now. */
export const explainCall = (given: { call_id: string; }) => ask<t.ExplainedCall>("GET", `/v1/policy/explain`, given);
/** The policy files, with their texts. */
export const listPolicyFiles = () => ask<t.PolicyFiles>("GET", `/v1/policy/files`);
/** Save a policy file, if everything loads with it. */
export const savePolicyFile = (given: t.SavedFile) => ask<t.Saved>("POST", `/v1/policy/files`, given);
/** Remove a policy file, if everything loads without it. */
export const removePolicyFile = (given: { name: string; was: string; }) => ask<t.Saved>("DELETE", `/v1/policy/files`, given);
/** Whether a text would load as a policy file; nothing is saved. */
export const validatePolicy = (given: t.PolicyDraft) => ask<t.Validated>("POST", `/v1/policy/validate`, given);
/** Decide every recorded call again with a text that is not saved. */
export const testPolicyDraft = (given?: t.DraftTest) => ask<t.Report>("POST", `/v1/policy/test`, given);
/** Decide every recorded call again with a text that is not saved. */
export const testPolicyDraftEventsPath = () => `/v1/policy/test`;
/** Who can do what: every tool in a few plain situations. */
export const whoCan = (given?: { principal?: string; origin?: "api" | "channel" | "child" | "interactive" | "scheduled"; }) => ask<t.WhoCan>("GET", `/v1/policy/who`, given);
/** The rules of a session. */
export const listRules = (sessionId: string) => ask<t.RuleList>("GET", `/v1/sessions/${part(sessionId)}/rules`);
/** Add a rule, in plain words. */
export const addRule = (sessionId: string, given: t.NewRule) => ask<t.ShownRule>("POST", `/v1/sessions/${part(sessionId)}/rules`, given);
/** Remove a rule. */
export const removeRule = (sessionId: string, given: { rule_id: string; }) => ask<t.ShownRule>("DELETE", `/v1/sessions/${part(sessionId)}/rules`, given);
/** End at once, as in a power cut, and start again; what runs goes on. */
export const restart = (given: t.Restart) => ask<t.Nothing>("POST", `/v1/restart`, given);
/** What secrets there are; never their values. */
export const listSecrets = () => ask<t.VaultState>("GET", `/v1/vault`);
/** Store a secret, also in place of the one that has its name. */
export const putSecret = (given: t.NewSecret) => ask<t.Secret>("POST", `/v1/vault`, given);
/** Remove a secret. */
export const removeSecret = (given: { name: string; scope?: string; }) => ask<void>("DELETE", `/v1/vault`, given);
/** Give a secret another value. */
export const rotateSecret = (given: t.NewValue) => ask<t.Secret>("POST", `/v1/vault/rotate`, given);
/** Re-encrypt every secret under a new master key. */
export const rotateVaultKey = () => ask<t.KeyRotated>("POST", `/v1/vault/rotate-key`);
/** The newest signed checkpoint, and the keys that sign. */
export const getCheckpoint = () => ask<t.CheckpointState>("GET", `/v1/journal/checkpoint`);
/** Sign a checkpoint over the journal as it is now. */
export const makeCheckpoint = () => ask<t.StoredCheckpoint>("POST", `/v1/journal/checkpoint`);
/** Prove that an entry stands in the journal at its position. */
export const proveEntry = (position: number, given?: { size?: number; }) => ask<t.InclusionProof>("GET", `/v1/journal/proof/${part(position)}`, given);
/** Prove that the journal has only grown between two sizes. */
export const proveConsistency = (given: { old: number; size?: number; }) => ask<t.ConsistencyProof>("GET", `/v1/journal/consistency`, given);
/** Entries with their proofs, for somebody without the product. */
export const exportProof = (given?: { session_id?: string; run_id?: string; first?: number; last?: number; bodies?: boolean; without?: string; }) => ask<t.ProofBundle>("GET", `/v1/journal/bundle`, given);
/** Replace the key that signs checkpoints. */
export const rotateJournalKey = () => ask<t.RotatedKey>("POST", `/v1/journal/key/rotate`);
/** Cosign a checkpoint of a journal that this daemon is a witness of (C2SP). */
export const cosignCheckpoint = (data: BodyInit) => send("POST", `/v1/witness/add-checkpoint`, data, "*/*").then((it) => it.json() as Promise<void>);
/** Where the daemon listens, and its certificates. */
export const tlsStatus = () => ask<t.Listening>("GET", `/v1/tls`);
/** A new certificate, or your own files read again. */
export const renewCertificate = () => ask<t.Shown>("POST", `/v1/tls/renew`);
/** The certificate of the daemon's own authority, for others to trust. */
export const getCertificateAuthorityPath = () => `/v1/tls/authority`;
/** Revoke a worker's certificate, at once. */
export const revokeWorkerCertificate = (fingerprint: string) => ask<t.Certificate>("DELETE", `/v1/tls/workers/${part(fingerprint)}`);
/** Background tasks, newest first. */
export const listTasks = (given?: { kind?: string; state?: "" | "cancelled" | "done" | "expired" | "failed" | "paused" | "queued" | "running"; before?: string; limit?: number; }) => ask<t.TaskPage>("GET", `/v1/tasks`, given);
/** Kinds of tasks, and how many are in which state. */
export const listTaskKinds = () => ask<t.TaskKindList>("GET", `/v1/tasks/kinds`);
/** Begin no more tasks of a kind, or begin them again. */
export const changeTaskKind = (taskKind: string, given: t.ChangeKind) => ask<t.KindCount>("POST", `/v1/tasks/kinds/${part(taskKind)}`, given);
/** One task. */
export const getTask = (taskId: string) => ask<t.Task>("GET", `/v1/tasks/${part(taskId)}`);
/** Pause, resume, retry or cancel a task. */
export const changeTask = (taskId: string, given: t.ChangeTask) => ask<t.Task>("POST", `/v1/tasks/${part(taskId)}`, given);
/** What models were asked, and what it cost. */
export const usage = (given?: { by?: "call" | "day" | "hour" | "model" | "month" | "origin" | "principal" | "run" | "schedule" | "session" | "task"; since_ms?: number; until_ms?: number; session_id?: string; run_id?: string; schedule_id?: string; everybody?: boolean; limit?: number; }) => ask<t.UsageList>("GET", `/v1/usage`, given);
/** What the month will have cost, by the trend. */
export const forecastUsage = (given?: { everybody?: boolean; }) => ask<t.SpendingForecast>("GET", `/v1/usage/forecast`, given);
/** What so many firings of a schedule will use. */
export const forecastSchedule = (given?: { schedule_id?: string; times?: number; }) => ask<t.RunForecast>("GET", `/v1/usage/forecast/schedule`, given);
/** Who was asked in a run, why, and what came of it. */
export const listRunPlans = (runId: string) => ask<t.RunPlans>("GET", `/v1/runs/${part(runId)}/plans`);
/** Limits on what models may cost, and what is left of them. */
export const listBudgets = () => ask<t.BudgetList>("GET", `/v1/budgets`);
/** Set a limit, also in place of the one that has its name. */
export const putBudget = (budget: string, given?: t.Terms) => ask<t.Limit>("PUT", `/v1/budgets/${part(budget)}`, given);
/** Remove a limit. */
export const removeBudget = (budget: string) => ask<void>("DELETE", `/v1/budgets/${part(budget)}`);
/** Store a file that a message can then have as an attachment. */
export const storeFile = (sessionId: string, data: BodyInit, given: { name: string; }) => send("POST", withQuery(`/v1/sessions/${part(sessionId)}/files`, given), data, "application/octet-stream").then((it) => it.json() as Promise<t.StoredFile>);
/** What the references of a message would bring. */
export const previewReferences = (sessionId: string, given: t.MessageDraft) => ask<t.ReferencesPreview>("POST", `/v1/sessions/${part(sessionId)}/references/preview`, given);
/** Paths of the workspace that begin so, for completing a reference. */
export const listPaths = (sessionId: string, given?: { prefix?: string; limit?: number; }) => ask<t.PathList>("GET", `/v1/sessions/${part(sessionId)}/paths`, given);
/** The agent answers a chat, for programs that know OpenAI's. */
export const createChatCompletion = (given: t.ChatRequest) => ask<t.ChatCompletion>("POST", `/v1/chat/completions`, given);
/** The agent answers a chat, for programs that know OpenAI's. */
export const createChatCompletionEventsPath = () => `/v1/chat/completions`;
/** The same as a response that the next one can name. */
export const createResponse = (given: t.ResponseRequest) => ask<t.Response>("POST", `/v1/responses`, given);
/** The same as a response that the next one can name. */
export const createResponseEventsPath = () => `/v1/responses`;
/** A response that was given before, as far as it has come. */
export const getResponse = (response: string) => ask<t.Response>("GET", `/v1/responses/${part(response)}`);
/** Cancel the run that is working on a response. */
export const cancelResponse = (response: string) => ask<t.Response>("POST", `/v1/responses/${part(response)}/cancel`);
/** Put the session of a response away, if it has no other. */
export const deleteResponse = (response: string) => ask<t.Deleted>("DELETE", `/v1/responses/${part(response)}`);
/** What a response answered. */
export const listResponseItems = (response: string, given?: { order?: "asc" | "desc"; limit?: number; after?: string; }) => ask<t.ItemList>("GET", `/v1/responses/${part(response)}/input_items`, given);
/** A conversation that responses can name: a session. */
export const createConversation = (given?: t.ConversationRequest) => ask<t.ApiConversation>("POST", `/v1/conversations`, given);
/** One of them. */
export const getConversation = (conversation: string) => ask<t.ApiConversation>("GET", `/v1/conversations/${part(conversation)}`);
/** Archive the session of a conversation. */
export const deleteConversation = (conversation: string) => ask<t.DeletedConversation>("DELETE", `/v1/conversations/${part(conversation)}`);
/** What was said in a conversation. */
export const listConversationItems = (conversation: string, given?: { order?: "asc" | "desc"; limit?: number; after?: string; }) => ask<t.ItemList>("GET", `/v1/conversations/${part(conversation)}/items`, given);
/** Models that can be asked for. */
export const listModels = () => ask<t.ModelList>("GET", `/v1/models`);
/** One of them. */
export const getModel = (model: string) => ask<t.OpenAIModel>("GET", `/v1/models/${part(model)}`);
/** Texts as vectors, by the daemon's own embedding model. */
export const createEmbeddings = (given: t.EmbeddingRequest) => ask<t.EmbeddingList>("POST", `/v1/embeddings`, given);
/** What is remembered, newest first. */
export const listMemory = (given?: { state?: "active" | "all" | "forgotten" | "rejected" | "review" | "superseded"; before?: string; limit?: number; }) => ask<t.ItemPage>("GET", `/v1/memory`, given);
/** Remember something. */
export const addMemory = (given: t.Adding) => ask<t.Item>("POST", `/v1/memory`, given);
/** Search by words and meaning, with explained scores. */
export const searchMemory = (given: { text: string; session_id?: string; limit?: number; }) => ask<t.Searched>("GET", `/v1/memory/search`, given);
/** How much is remembered, and how it is searched. */
export const memoryStatus = () => ask<t.MemoryStatus>("GET", `/v1/memory/status`);
/** Everything, also history, one item a line. */
export const exportMemoryPath = () => `/v1/memory/export`;
/** Remember many at once. */
export const importMemory = (given?: t.Import) => ask<t.Imported>("POST", `/v1/memory/import`, given);
/** Remove items permanently, with all their versions. */
export const purgeMemory = (given?: t.Purge) => ask<t.Purged>("POST", `/v1/memory/purge`, given);
/** One item. */
export const getMemory = (memoryId: string) => ask<t.Item>("GET", `/v1/memory/${part(memoryId)}`);
/** Correct or pin an item. */
export const changeMemory = (memoryId: string, given?: t.MemoryChange) => ask<t.Item>("PATCH", `/v1/memory/${part(memoryId)}`, given);
/** Forget an item; it can be brought back until it is purged. */
export const forgetMemory = (memoryId: string) => ask<t.Item>("DELETE", `/v1/memory/${part(memoryId)}`);
/** All versions of what an item says, newest first. */
export const memoryHistory = (memoryId: string) => ask<t.ItemPage>("GET", `/v1/memory/${part(memoryId)}/history`);
/** Accept or reject an item that needs review, or was forgotten. */
export const reviewMemory = (memoryId: string, given: t.Review) => ask<t.Item>("POST", `/v1/memory/${part(memoryId)}/review`, given);
/** What was said in sessions, by words and meaning. */
export const searchSessions = (given: { q: string; semantic?: boolean; limit?: number; }) => ask<t.SaidPage>("GET", `/v1/sessions/search`, given);
/** MCP servers: their state, their tools, what needs to be accepted. */
export const listMcpServers = () => ask<t.ServerList>("GET", `/v1/mcp`);
/** Offer what a server says of its tools now. */
export const acceptMcpServer = (server: string, given: t.Accept) => ask<t.ServerStatus>("POST", `/v1/mcp/${part(server)}/accept`, given);
/** Say what the arguments of an accepted tool are for. */
export const setMcpArguments = (server: string, given: t.SetUse) => ask<t.ServerStatus>("POST", `/v1/mcp/${part(server)}/arguments`, given);
/** Restart a server. */
export const restartMcpServer = (server: string) => ask<t.ServerStatus>("POST", `/v1/mcp/${part(server)}/restart`);
/** Installed skills. */
export const listSkills = () => ask<t.SkillList>("GET", `/v1/skills`);
/** Install or update a skill from a folder or zip file on the daemon's machine. */
export const installSkill = (given: t.SkillSource) => ask<t.Proposal | t.ShownSkill>("POST", `/v1/skills`, given);
/** Install or update a skill from a zip file that is sent. */
export const installSkillArchive = (data: BodyInit, given?: { confirm?: string; }) => send("POST", withQuery(`/v1/skill-archives`, given), data, "application/zip").then((it) => it.json() as Promise<t.Proposal | t.ShownSkill>);
/** One skill: what it may do, its tools, its instructions. */
export const getSkill = (skill: string) => ask<t.ShownSkill>("GET", `/v1/skills/${part(skill)}`);
/** Remove a skill. */
export const removeSkill = (skill: string) => ask<void>("DELETE", `/v1/skills/${part(skill)}`);
/** Put a skill in quarantine, enable it or trust it. */
export const setSkillState = (skill: string, given: t.NewSkillState) => ask<t.ShownSkill>("POST", `/v1/skills/${part(skill)}/state`, given);
/** The skill as a zip file. */
export const exportSkillPath = (skill: string) => `/v1/skills/${part(skill)}/export`;
/** Whose signed skills are trusted. */
export const listPublishers = () => ask<t.PublisherList>("GET", `/v1/publishers`);
/** Trust the signed skills of a publisher. */
export const addPublisher = (given: t.NewPublisher) => ask<t.Publisher>("POST", `/v1/publishers`, given);
/** Trust a publisher no longer; their skills go back into quarantine. */
export const removePublisher = (given: { name: string; }) => ask<void>("DELETE", `/v1/publishers`, given);
/** Workers on other machines, and what runs there. */
export const listWorkers = () => ask<t.WorkerList>("GET", `/v1/workers`);
/** A one-time code by which a machine becomes a worker. */
export const enrolWorker = (given: t.EnrolWorker) => ask<t.Enrolment>("POST", `/v1/workers`, given);
/** One worker, with the calls that it was given last. */
export const getWorker = (worker: string) => ask<t.WorkerDetail>("GET", `/v1/workers/${part(worker)}`);
/** Give it nothing new, or use it again. */
export const drainWorker = (worker: string, given?: t.DrainWorker) => ask<t.WorkerShown>("POST", `/v1/workers/${part(worker)}/drain`, given);
/** Revoke a worker: its certificate is no longer good. */
export const revokeWorker = (worker: string) => ask<t.WorkerShown>("DELETE", `/v1/workers/${part(worker)}`);
/** Notes for agents: what they say, and what has changed since they were accepted. */
export const listNotes = (given?: { session_id?: string | null; workspace?: string | null; }) => ask<t.NoteList>("GET", `/v1/notes`, given);
/** Accept the content of a note that was shown. */
export const acceptNote = (given: t.AcceptNote) => ask<t.Note>("POST", `/v1/notes/accept`, given);
/** Reject a note that was accepted; runs go without it. */
export const rejectNote = (given: { workspace: string; file: string; }) => ask<void>("DELETE", `/v1/notes`, given);
/** Model providers: where they are, what they offer, where their keys are. */
export const listProviders = () => ask<t.ProviderList>("GET", `/v1/providers`);
/** Add or change a provider, at once. */
export const saveProvider = (given: t.NewProvider) => ask<t.ProviderList>("POST", `/v1/providers`, given);
/** Remove a provider, at once; runs that began with it end with it. */
export const removeProvider = (given: { name: string; }) => ask<t.ProviderList>("DELETE", `/v1/providers`, given);
/** One tiny request with a tool to a provider, saved or not. */
export const testProvider = (given: t.NewProvider) => ask<t.Trial>("POST", `/v1/providers/test`, given);
/** Providers that could be set up: servers on this machine, keys in the environment. */
export const findProviders = () => ask<t.FoundProviders>("GET", `/v1/providers/found`);
/** The models that a provider says it has, saved or not. */
export const listProviderModels = (given: t.NewProvider) => ask<t.FoundProvider>("POST", `/v1/providers/models`, given);
/** Choose the model that is used first, at once. */
export const setDefaultModel = (given: t.DefaultModel) => ask<t.ProviderList>("POST", `/v1/providers/default`, given);
/** Change settings of learning, healing or backups, at once and permanently. */
export const changeConfig = (given: t.ConfigChanges) => ask<t.ConfigReloaded>("PATCH", `/v1/config`, given);
/** Open, close or move listeners, at once. */
export const changeListeners = (given?: t.ListenerChanges) => ask<t.ConfigReloaded>("PATCH", `/v1/listeners`, given);
/** Add an MCP server or change its settings, at once. */
export const saveMcpServer = (given: t.NewMcpServer) => ask<t.SavedMcpServer>("POST", `/v1/mcp`, given);
/** Enable or disable an MCP server, at once. */
export const changeMcpServer = (server: string, given: t.McpServerChange) => ask<t.SavedMcpServer>("PATCH", `/v1/mcp/${part(server)}`, given);
/** Remove an MCP server, at once; its folder and what was accepted stay. */
export const removeMcpServer = (server: string) => ask<t.SavedMcpServer>("DELETE", `/v1/mcp/${part(server)}`);
/** Try policies beside those in force, at once; their decisions are only recorded. */
export const useShadowPolicy = (given: t.NewShadow) => ask<t.PolicyState>("POST", `/v1/policy/shadow`, given);
/** Go over to another preset, at once. */
export const setPreset = (given: t.NewPreset) => ask<t.PolicyState>("POST", `/v1/policy/preset`, given);
/** A session as it was after an entry, and what came since. */
export const sessionAt = (sessionId: string, seq: number, given?: { turns?: number; }) => ask<t.Moment>("GET", `/v1/sessions/${part(sessionId)}/at/${part(seq)}`, given);
/** Take files and conversation back to an entry, or preview it. */
export const rewindSession = (sessionId: string, given: t.Rewind) => ask<t.Rewound>("POST", `/v1/sessions/${part(sessionId)}/rewind`, given);
/** Undo effects. */
export const undo = (sessionId: string, given?: t.Undo) => ask<t.Undone>("POST", `/v1/sessions/${part(sessionId)}/undo`, given);
/** Run the loop again over a recorded run, without any effect. */
export const replayRun = (runId: string) => ask<t.RunReplay>("POST", `/v1/runs/${part(runId)}/replay`);
/** How far the replay of a run is, and where it differs. */
export const getReplay = (runId: string, given?: { wait_ms?: number; }) => ask<t.RunReplay>("GET", `/v1/runs/${part(runId)}/replay`, given);
/** Take a run up again from an entry, live, with another model or policies. */
export const forkRun = (runId: string, given?: t.Fork) => ask<t.Forked>("POST", `/v1/runs/${part(runId)}/fork`, given);
/** The causes of an entry, a file, a message or a cost, as a tree. */
export const why = (given: { about: string; limit?: number; }) => ask<t.WhyAnswer>("GET", `/v1/journal/why`, given);
/** Questions, unattended calls, repeated answers and instruction-like sources. */
export const securityScore = (given?: { since_ms?: number; }) => ask<t.SecurityScore>("GET", `/v1/security/score`, given);
/** Files that were written after untrusted content was read. */
export const listLabelledFiles = (given?: { after?: string; limit?: number; }) => ask<t.LabelledFiles>("GET", `/v1/security/files`, given);
/** Take the label of a file or a folder away. */
export const clearFileLabel = (given: t.ClearLabel) => ask<t.LabelledFiles>("POST", `/v1/security/files/clear`, given);
/** Nodes of the journal, the one that leads first. */
export const listNodes = () => ask<t.NodeList>("GET", `/v1/nodes`);
/** Have the node that leads hand over between two steps. */
export const drainNode = (given?: t.DrainNode) => ask<t.NodeInfo>("POST", `/v1/nodes/drain`, given);
/** The subagents that work or worked for a session, as a tree. */
export const listAgents = (sessionId: string) => ask<t.Agents>("GET", `/v1/sessions/${part(sessionId)}/agents`);
/** Seal sessions that were not used for long, or list them. */
export const archiveOldSessions = (given?: t.ArchiveOld) => ask<t.Archived>("POST", `/v1/journal/archive`, given);
/** Remove artifacts that nothing names, and look after the database file. */
export const cleanJournal = (given?: t.Clean) => ask<t.CleanedUp>("POST", `/v1/journal/clean`, given);
/** The segments that hold sealed sessions. */
export const listSegments = () => ask<t.SegmentList>("GET", `/v1/journal/segments`);
/** Take a session out of the journal, the lists and search; a sealed copy proves it. */
export const deleteSession = (sessionId: string) => ask<t.DeletedSession>("DELETE", `/v1/sessions/${part(sessionId)}`);
/** Restore a sealed session. */
export const restoreSession = (sessionId: string) => ask<t.Session>("POST", `/v1/sessions/${part(sessionId)}/restore`);
/** The backups of the home at their target, and how the last ones went. */
export const listHomeBackups = () => ask<t.HomeBackupList>("GET", `/v1/backups`);
/** Make a backup of the home now. */
export const makeBackup = () => ask<t.MadeBackup>("POST", `/v1/backups`);
/** Restore a backup into a scratch home and verify it. */
export const checkBackup = (given?: t.CheckBackup) => ask<t.CheckedBackup>("POST", `/v1/backups/check`, given);
/** Condense the older turns of a session, or say what that would be. */
export const compactSession = (sessionId: string, given?: t.Compact) => ask<t.Compaction>("POST", `/v1/sessions/${part(sessionId)}/compaction`, given);
/** The compactions of a session, oldest first. */
export const listCompactions = (sessionId: string) => ask<t.CompactionPage>("GET", `/v1/sessions/${part(sessionId)}/compactions`);
/** Undo a compaction and those built on it. */
export const undoCompaction = (sessionId: string, seq: number) => ask<t.Uncompacted>("POST", `/v1/sessions/${part(sessionId)}/compactions/${part(seq)}/undo`);
/** Keep an exchange whole in every compaction, or no longer. */
export const pinEntry = (sessionId: string, given: t.Pin) => ask<t.Pinned>("POST", `/v1/sessions/${part(sessionId)}/pins`, given);
/** What was learned and waits, or is in a state; newest first. */
export const listCandidates = (given?: { state?: "proposed" | "accepted" | "applied" | "conflicted" | "pending_review" | "rejected" | "rolled_back" | "suppressed" | "all" | "waiting"; kind?: "fact" | "policy" | "preference" | "procedure" | "any"; before?: string; limit?: number; }) => ask<t.CandidateList>("GET", `/v1/candidates`, given);
/** Thresholds, cooldown and who reads. */
export const learningSettings = () => ask<t.LearningSettings>("GET", `/v1/candidates/settings`);
/** One candidate: evidence, and what accepting would do. */
export const getCandidate = (candidateId: string) => ask<t.ShownCandidate>("GET", `/v1/candidates/${part(candidateId)}`);
/** Accept it, which does it. */
export const acceptCandidate = (candidateId: string, given?: t.Accepting) => ask<t.Candidate>("POST", `/v1/candidates/${part(candidateId)}/accept`, given);
/** Reject it permanently. */
export const rejectCandidate = (candidateId: string, given?: t.Rejecting) => ask<t.Candidate>("POST", `/v1/candidates/${part(candidateId)}/reject`, given);
/** Roll back what was applied. */
export const rollBackCandidate = (candidateId: string) => ask<t.Candidate>("POST", `/v1/candidates/${part(candidateId)}/rollback`);
/** Look now for what can be learned from a run. */
export const reflectOnRun = (runId: string) => ask<t.Reflected>("POST", `/v1/runs/${part(runId)}/reflect`);
/** Schedules, with their next times and what they may cost. */
export const listSchedules = () => ask<t.ScheduleList>("GET", `/v1/schedules`);
/** Save a schedule; a webhook's secret is shown this once. */
export const addSchedule = (given: t.NewSchedule) => ask<t.ShownSchedule>("POST", `/v1/schedules`, given);
/** What a schedule would be, saving nothing. */
export const previewSchedule = (given: t.NewSchedule) => ask<t.ShownSchedule>("POST", `/v1/schedules/preview`, given);
/** One schedule, with what became of its last firings. */
export const getSchedule = (scheduleId: string) => ask<t.ShownSchedule>("GET", `/v1/schedules/${part(scheduleId)}`);
/** Give a schedule other words, times or rules; it keeps its history. */
export const changeSchedule = (scheduleId: string, given: t.NewSchedule) => ask<t.ShownSchedule>("PUT", `/v1/schedules/${part(scheduleId)}`, given);
/** Remove a schedule; runs that are under way go on. */
export const removeSchedule = (scheduleId: string) => ask<t.Schedule>("DELETE", `/v1/schedules/${part(scheduleId)}`);
/** Do not fire until it is resumed. */
export const pauseSchedule = (scheduleId: string) => ask<t.ShownSchedule>("POST", `/v1/schedules/${part(scheduleId)}/pause`);
/** Fire again from now on. */
export const resumeSchedule = (scheduleId: string) => ask<t.ShownSchedule>("POST", `/v1/schedules/${part(scheduleId)}/resume`);
/** Fire now. */
export const runSchedule = (scheduleId: string) => ask<t.Firing>("POST", `/v1/schedules/${part(scheduleId)}/run`);
/** Call a webhook, signed. */
export const callScheduleHook = (scheduleId: string, data: BodyInit) => send("POST", `/v1/hooks/${part(scheduleId)}`, data, "*/*").then((it) => it.json() as Promise<t.Called>);
/** Channels: their connections, rules and counts. */
export const listChannels = () => ask<t.ChannelList>("GET", `/v1/channels`);
/** Add a channel, or change its settings; secrets go into the vault. */
export const saveChannel = (given: t.NewChannel) => ask<t.ChannelStatus>("POST", `/v1/channels`, given);
/** Remove a channel; what was said there stays. */
export const removeChannel = (channel: string) => ask<t.ChannelList>("DELETE", `/v1/channels/${part(channel)}`);
/** Kinds of channels and what each needs. */
export const listChannelKinds = () => ask<t.ConnectorKindList>("GET", `/v1/channels/kinds`);
/** Messages that came in, newest first. */
export const listChannelMessages = (given?: { channel?: string; state?: "" | "answered" | "failed" | "held" | "queued" | "received" | "refused"; before?: number; limit?: number; }) => ask<t.MessagePage>("GET", `/v1/channels/messages`, given);
/** What happened to a message, step by step. */
export const traceMessage = (given: { of: string; }) => ask<t.Trace>("GET", `/v1/channels/trace`, given);
/** Replies that could not be delivered. */
export const listDeadLetters = (given?: { channel?: string; }) => ask<t.DeadLetters>("GET", `/v1/channels/dead`, given);
/** Send such a reply again. */
export const replayDeadLetter = (replyId: string) => ask<t.DeadLetters>("POST", `/v1/channels/dead/${part(replyId)}/replay`);
/** Give such a reply up. */
export const dropDeadLetter = (replyId: string) => ask<t.DeadLetters>("POST", `/v1/channels/dead/${part(replyId)}/drop`);
/** Who waits to be admitted. */
export const listPairings = () => ask<t.PairingList>("GET", `/v1/channels/pairings`);
/** Admit somebody, or do not. */
export const settlePairing = (given: t.SettlePairing) => ask<t.Settled>("POST", `/v1/channels/pairings`, given);
/** A code that admits the first person who sends it. */
export const invite = (given: t.Invite) => ask<t.Invitation>("POST", `/v1/channels/invitations`, given);
/** Who has written, who is paired, whose identity they are. */
export const listPeople = (given?: { channel?: string; }) => ask<t.People>("GET", `/v1/channels/people`, given);
/** Take a pairing back, or link an identity to a user. */
export const changePerson = (given: t.ChangePerson) => ask<t.Person>("POST", `/v1/channels/people`, given);
/** Hand an approval on to somebody else. */
export const routeApproval = (approvalId: string, given?: t.RouteApproval) => ask<t.Approval>("POST", `/v1/channels/approvals/${part(approvalId)}/route`, given);
/** Refuse everything on all channels, or go on. */
export const pauseChannels = (given: t.Pause) => ask<t.ChannelList>("POST", `/v1/channels/router`, given);
/** One channel. */
export const getChannel = (channel: string) => ask<t.ChannelStatus>("GET", `/v1/channels/${part(channel)}`);
/** Pause, resume or reconnect a channel. */
export const changeChannel = (channel: string, given: t.ChangeChannel) => ask<t.ChannelStatus>("POST", `/v1/channels/${part(channel)}`, given);
/** Change rules, from now on. */
export const changeChannelRules = (channel: string, given: t.ChangeRules) => ask<t.ChannelStatus>("PATCH", `/v1/channels/${part(channel)}/rules`, given);
/** What would become of a message, doing nothing. */
export const previewChannelMessage = (channel: string, given: t.PreviewMessage) => ask<t.RoutingPreview>("POST", `/v1/channels/${part(channel)}/preview`, given);
/** Ask the platform who we are; send a test message. */
export const testChannel = (channel: string, given?: t.TestChannel) => ask<t.Tested>("POST", `/v1/channels/${part(channel)}/test`, given);
/** The door for a platform that calls; its connector checks who it is. */
export const callChannelHook = (channel: string, data: BodyInit) => send("POST", `/v1/channels/${part(channel)}/hook`, data, "*/*").then((it) => it.json() as Promise<void>);
/** What is well and what is not, with a fix for each. */
export const diagnose = (given?: { deep?: boolean; }) => ask<t.Diagnosis>("GET", `/v1/doctor`, given);
/** Repair one check, or all that can be. */
export const repair = (given?: t.WhichCheck) => ask<t.Repaired>("POST", `/v1/doctor/repair`, given);
/** How watchful the daemon is, and when it looked last. */
export const watchdogStatus = () => ask<t.Watching>("GET", `/v1/healing`);
/** Processor, memory, disk, queue and journal over the last hours. */
export const loadHistory = () => ask<t.Load>("GET", `/v1/load`);
/** What went wrong with the daemon, and what was tried. */
export const listIncidents = (given?: { open?: boolean | null; before?: string; limit?: number; }) => ask<t.IncidentList>("GET", `/v1/incidents`, given);
/** One incident. */
export const getIncident = (incidentId: string) => ask<t.Incident>("GET", `/v1/incidents/${part(incidentId)}`);
/** What the caller was told without asking, newest first. */
export const listNotices = (given?: { unread?: boolean | null; before?: string; limit?: number; }) => ask<t.NoticeList>("GET", `/v1/notices`, given);
/** Mark one notice as read, or all. */
export const readNotices = (given?: t.WhichNotice) => ask<t.MarkedRead>("POST", `/v1/notices/read`, given);
/** MCP: one message of a client (streamable HTTP). */
export const sendMcp = (data: BodyInit) => send("POST", `/mcp`, data, "application/json").then((it) => it.json() as Promise<t.RpcAnswer>);
/** MCP: take up a stream that broke. */
export const mcpEventsPath = () => `/mcp`;
/** MCP: end a session; its runs go on. */
export const endMcpSession = () => ask<void>("DELETE", `/mcp`);
