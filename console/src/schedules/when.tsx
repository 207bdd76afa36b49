// When a schedule fires, as fields of a form, and in the words that the daemon reads.
import type { VNode } from "preact";
import { SelectField, TextField } from "../ui/form";
import { Choice } from "../ui/parts";
import type { Schedule } from "../types";

export type On = "cron" | "every" | "at" | "file" | "webhook";
export interface When { on: On; cron: string; number: string; unit: "m" | "h" | "d" | "w"; moment: string; path: string }

export const BLANK: When = { on: "cron", cron: "weekdays at 8:30", number: "2", unit: "h", moment: "", path: "" };
const KINDS: readonly (readonly [On, string])[] = [["cron", "Daily or weekly"], ["every", "Every…"], ["at", "Once"], ["file", "File change"], ["webhook", "Webhook"]];
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

const LENGTHS: readonly (readonly [When["unit"], number])[] = [["w", 604_800_000], ["d", 86_400_000], ["h", 3_600_000], ["m", 60_000]];

/** What a saved trigger looks like in the form. A moment stands in the schedule's own time zone. */
export function asFields(trigger: Schedule["trigger"], zone: string): When {
  switch (trigger.on) {
    case "cron": return { ...BLANK, cron: trigger.expression };
    case "every": {
      const [unit, length] = LENGTHS.find(([, each]) => trigger.every_ms % each === 0) ?? ["m", 60_000];
      return { ...BLANK, on: "every", unit, number: String(trigger.every_ms / length) };
    }
    // Swedish writes a moment as a field of a form wants it.
    case "at": return { ...BLANK, on: "at", moment: new Date(trigger.at_ms).toLocaleString("sv-SE", { timeZone: zone }).slice(0, 16).replace(" ", "T") };
    case "file": return { ...BLANK, on: "file", path: trigger.path };
    default: return { ...BLANK, on: "webhook" };
  }
}

export function WhenFields({ when, wrong, onChange }: { when: When; wrong: string; onChange: (some: Partial<When>) => void }): VNode {
  return (
    <>
      <Choice label="Trigger" value={when.on} options={KINDS} onChoose={(on) => onChange({ on })} />
      {when.on === "cron" && <TextField label="When" value={when.cron} onInput={(cron) => onChange({ cron })} wrong={wrong} eager hint={<>In words, such as <code>daily at 9</code>, <code>weekdays at 8:30</code>, <code>every monday at 6pm</code>, or five cron fields, such as <code>0 9 * * 1-5</code>.</>} />}
      {when.on === "every" && (
        <div class="row fields">
          <TextField label="Every" value={when.number} onInput={(number) => onChange({ number })} wrong={wrong} eager />
          <SelectField label="Unit" value={when.unit} options={UNITS} onChoose={(unit) => onChange({ unit })} />
        </div>
      )}
      {when.on === "at" && <TextField label="Date and time" type="datetime-local" value={when.moment} onInput={(moment) => onChange({ moment })} wrong={wrong} eager />}
      {when.on === "file" && <TextField label="File or folder" mono value={when.path} onInput={(path) => onChange({ path })} wrong={wrong} eager placeholder="/home/me/inbox" hint="An absolute path on Palyra's computer. Changes close together count as one." />}
      {when.on === "webhook" && <p class="hint">Another program calls it with a signature. You get the secret once, when the schedule becomes a webhook. Its data is treated as untrusted.</p>}
    </>
  );
}
