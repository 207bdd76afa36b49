// When a schedule fires, as fields of a form, and in the words that the daemon reads.
import type { VNode } from "preact";
import { SelectField, TextField } from "../ui/form";
import { Choice } from "../ui/parts";

export type On = "cron" | "every" | "at" | "file" | "webhook";
export interface When { on: On; cron: string; number: string; unit: "m" | "h" | "d" | "w"; moment: string; path: string }

export const BLANK: When = { on: "cron", cron: "weekdays at 8:30", number: "2", unit: "h", moment: "", path: "" };
const KINDS: readonly (readonly [On, string])[] = [["cron", "At times of day"], ["every", "In a rhythm"], ["at", "Once"], ["file", "When a file changes"], ["webhook", "When called"]];
const UNITS = [["m", "minutes"], ["h", "hours"], ["d", "days"], ["w", "weeks"]] as const;

/** As `palyra schedule add` takes it; empty while something is missing. */
export function asWords(when: When): string {
  switch (when.on) {
    case "cron": return when.cron.trim();
    case "every": return when.number.trim() ? `every ${when.number.trim()}${when.unit}` : "";
    case "at": return when.moment ? `at ${when.moment.replace("T", " ")}` : "";
    case "file": return when.path.trim() ? `file ${when.path.trim()}` : "";
    case "webhook": return "webhook";
  }
}

export function WhenFields({ when, wrong, onChange }: { when: When; wrong: string; onChange: (some: Partial<When>) => void }): VNode {
  return (
    <>
      <Choice label="It fires" value={when.on} options={KINDS} onChoose={(on) => onChange({ on })} />
      {when.on === "cron" && <TextField label="When" value={when.cron} onInput={(cron) => onChange({ cron })} wrong={wrong} eager hint={<>In words, as <code>daily at 9</code>, <code>weekdays at 8:30</code>, <code>every monday at 6pm</code>, or as five cron fields, as <code>0 9 * * 1-5</code>.</>} />}
      {when.on === "every" && (
        <div class="row fields">
          <TextField label="Every" value={when.number} onInput={(number) => onChange({ number })} wrong={wrong} eager />
          <SelectField label="Unit" value={when.unit} options={UNITS} onChoose={(unit) => onChange({ unit })} />
        </div>
      )}
      {when.on === "at" && <TextField label="Day and time" type="datetime-local" value={when.moment} onInput={(moment) => onChange({ moment })} wrong={wrong} eager />}
      {when.on === "file" && <TextField label="File or folder" mono value={when.path} onInput={(path) => onChange({ path })} wrong={wrong} eager placeholder="/home/me/inbox" hint="By its whole path, on Palyra's computer. Many changes at once are one firing." />}
      {when.on === "webhook" && <p class="hint">Another program calls it, signed with a secret that you get once, when it is saved. What it sends reaches the agent as something from outside.</p>}
    </>
  );
}
