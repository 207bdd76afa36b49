// Incidents on a time line: one lane for each area, a bar from when an incident was opened to when it was closed.
import type { VNode } from "preact";
import type { Incident } from "../types";
import { visible } from "../core/words";
import { clock, day } from "../ui/figures";
import { useWidth } from "../ui/plot";

const DAY_MS = 86_400_000;
const DAYS = 7;
const LANE = 22;
const NAMES = 92;
const AXIS = 20;
const LABEL = 56;
const TONES: Record<Incident["severity"], string> = { info: "info", warning: "warn", error: "bad", critical: "bad" };

export function IncidentLine({ incidents, areas }: { incidents: readonly Incident[]; areas: Record<Incident["domain"], string> }): VNode {
  const [place, width] = useWidth<HTMLDivElement>();
  const to = Date.now();
  const from = to - DAYS * DAY_MS;
  const shown = incidents.filter((each) => (each.closed_ms || to) >= from);
  const lanes = [...new Set(shown.map((each) => each.domain))];
  const height = Math.max(1, lanes.length) * LANE + AXIS;
  const x = (ms: number) => NAMES + (Math.max(0, width - NAMES - 8) * (Math.max(from, Math.min(to, ms)) - from)) / (to - from);
  const every = Math.ceil(LABEL / Math.max(1, x(from + DAY_MS) - x(from)));
  const first = Math.ceil(from / DAY_MS) * DAY_MS;
  return (
    <div class="incident-line" ref={place} role="img" aria-label={`${shown.length} incidents in the last ${DAYS} days. The list below has all of them.`} style={{ height: `${height}px` }}>
      {width > 0 && (
        <svg width={width} height={height} aria-hidden="true">
          {Array.from({ length: DAYS }, (_, at) => first + at * DAY_MS).map((at, index) => <g key={at}><line class="plot-grid" x1={x(at)} x2={x(at)} y1={0} y2={height - AXIS} />{index % every === 0 && x(at) + 44 < width && <text x={x(at) + 3} y={height - 6}>{day(at)}</text>}</g>)}
          {lanes.map((lane, at) => <text key={lane} x={0} y={at * LANE + 15}>{areas[lane] ?? lane}</text>)}
          {!lanes.length && <text x={0} y={15}>No incidents</text>}
          {shown.map((each) => (
            <rect key={each.incident_id} class={`bar t-${TONES[each.severity]} ${each.closed_ms ? "" : "open"}`} x={x(each.opened_ms)} y={lanes.indexOf(each.domain) * LANE + 4} height={14} rx={3} width={Math.max(4, x(each.closed_ms || to) - x(each.opened_ms))}>
              <title>{visible(each.summary)}: {day(each.opened_ms)}, {clock(each.opened_ms)}{each.closed_ms ? "" : ", still open"}</title>
            </rect>
          ))}
        </svg>
      )}
    </div>
  );
}
