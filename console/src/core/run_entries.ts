// The tape entries of one run, found from the end of its session backwards: a run that is asked for is most often a recent one.
import type { Entry } from "../types";
import * as palyra from "./verbs";

const PAGE = 500;
const MOST_PAGES = 40;

export async function entriesOf(runId: string): Promise<Entry[]> {
  const run = await palyra.getRun(runId);
  const session = await palyra.getSession(run.session_id);
  let found: Entry[] = [];
  let after = Math.max(0, (session.head_seq ?? 0) - PAGE);
  for (let page = 0; page < MOST_PAGES; page++) {
    const { entries } = await palyra.listEntries(run.session_id, { after, limit: PAGE });
    found = [...entries.filter((each) => each.run_id === runId && !found.some(({ seq }) => seq === each.seq)), ...found];
    if (after === 0 || (entries[0]?.time_ms ?? 0) < run.created_ms) break;
    after = Math.max(0, after - PAGE);
  }
  return found;
}
