// Long work of the daemon, told while it is done: `progress` now and then, `report` at the end.
import { access, keyHeader, Refused, UNREACHABLE } from "./api";

/** The report. Aborting ends the work, too. A body makes it a POST. */
export async function told<P, R>(path: string, onProgress: (progress: P) => void, more: { body?: unknown; signal?: AbortSignal } = {}): Promise<R> {
  const headers: Record<string, string> = { ...keyHeader(), Accept: "text/event-stream" };
  const init: RequestInit = { headers, ...(more.signal ? { signal: more.signal } : {}) };
  if (more.body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(init, { method: "POST", body: JSON.stringify(more.body) });
  }
  const response = await fetch(path, init).catch((failure: unknown) => {
    throw more.signal?.aborted ? failure : new Refused(0, "unreachable", UNREACHABLE);
  });
  if (!response.ok || !response.body) {
    if (response.status === 401) access.value = "out";
    const wire = (await response.json().catch(() => ({}))) as { error?: { code?: string; message?: string; details?: Record<string, unknown> } };
    throw new Refused(response.status, wire.error?.code ?? "unknown", wire.error?.message ?? `the daemon answered ${response.status}`, wire.error?.details);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Refused(0, "broken", "The work broke off before its end. Try again; if it happens again, look at the daemon's log.");
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop()!;
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (event === "progress" && data) onProgress(JSON.parse(data) as P);
      if (event === "report" && data) return JSON.parse(data) as R;
    }
  }
}
