// A new schedule, as a form. While it is filled in, the daemon says when it would fire and what is wrong with it; nothing is saved before.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refused, wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { status } from "../core/store";
import { AreaField, CheckField, SelectField, TextField } from "../ui/form";
import { Page, useAttempt } from "../ui/page";
import { Problem } from "../ui/parts";
import { Coming } from "./coming";
import { once } from "./one";
import { ScopeFields } from "./scopes";
import { ASKS, MISSED, OVERLAPS, THEN } from "./words";
import { asWords, BLANK, WhenFields, type When } from "./when";
import type { NewSchedule, ShownSchedule, Subject } from "../types";

const SOON_MS = 250;
const SOMETHING = "…";
const ZONES = Intl.supportedValuesOf("timeZone");

interface Draft {
  text: string; name: string; zone: string; overlap: "skip" | "queue" | "replace"; missed: "" | "skip" | "catch_up"; ask: "wait" | "deny";
  from: string; to: string; then: "later" | "skip"; scopes: Subject[]; model: string; workspace: string; fresh: boolean;
}
const EMPTY: Draft = { text: "", name: "", zone: Intl.DateTimeFormat().resolvedOptions().timeZone, overlap: "skip", missed: "", ask: "wait", from: "", to: "", then: "later", scopes: [], model: "", workspace: "", fresh: false };

function whole(draft: Draft, when: string): NewSchedule {
  const { text, name, zone, overlap, missed, ask, from, to, then, scopes, model, workspace, fresh } = draft;
  return { text: text.trim(), when, name: name.trim(), zone: zone.trim(), overlap, missed: missed || null, ask, quiet: from && to ? { from, to, then } : null, scopes, model, workspace: workspace.trim(), fresh };
}

type Field = "when" | "zone" | "rest";
interface Foreseen { shown?: ShownSchedule; wrong: string; field: Field }
const NOTHING: Foreseen = { wrong: "", field: "when" };

/** Which field an error is about, as far as the daemon says so. */
function fieldOf(failure: unknown): Field {
  const details = failure instanceof Refused ? failure.details : {};
  return "zone" in details ? "zone" : ["tool", "kind", "model", "workspace"].some((each) => each in details) ? "rest" : "when";
}

/** What the daemon says about a schedule that is not saved: what it would be, or what is wrong. */
function useForeseen(wanted: NewSchedule): Foreseen {
  const [found, setFound] = useState<Foreseen>(NOTHING);
  const asked = JSON.stringify({ ...wanted, text: wanted.text || SOMETHING });
  useEffect(() => {
    if (!wanted.when) return setFound(NOTHING);
    let stale = false;
    const timer = setTimeout(() => {
      palyra.previewSchedule(JSON.parse(asked)).then(
        (shown) => { if (!stale) setFound({ ...NOTHING, shown }); },
        (failure: unknown) => { if (!stale) setFound({ wrong: wordsOf(failure), field: fieldOf(failure) }); },
      );
    }, SOON_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [asked]);
  return found;
}

export function NewOne(): VNode {
  const [when, setWhen] = useState<When>(BLANK);
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const { error, busy, attempt } = useAttempt();
  const wanted = whole(draft, asWords(when));
  const { shown, wrong, field } = useForeseen(wanted);
  const set = (some: Partial<Draft>) => setDraft({ ...draft, ...some });
  const half = Boolean(draft.from) !== Boolean(draft.to);
  const ready = Boolean(wanted.text && wanted.when && shown && !wrong && !half);
  const save = () => attempt(async () => {
    const made = await palyra.addSchedule(wanted);
    if (made.secret) once.value = { id: made.schedule.schedule_id, secret: made.secret };
    go("schedules", made.schedule.schedule_id);
  }, "It is saved.");
  return (
    <Page title="New schedule" actions={<a class="button quiet" href={href("schedules")}>All schedules</a>}>
      <form class="form wide" aria-label="New schedule" onSubmit={(event) => { event.preventDefault(); if (ready) void save(); }}>
        <AreaField label="What is said to the agent then" value={draft.text} onInput={(text) => set({ text })} required placeholder="Say what changed in this folder since yesterday" />
        <WhenFields when={when} wrong={field === "when" ? wrong : ""} onChange={(some) => setWhen({ ...when, ...some })} />
        <section class={when.on === "cron" || when.on === "every" ? "foreseen five" : "foreseen"} aria-label="What comes" aria-live="polite">{shown && !wrong ? <Coming shown={shown} /> : <p class="hint">{wrong ? "Nothing comes of it yet." : "When it fires is shown here as you type."}</p>}</section>
        <div class="row fields">
          <TextField label="Name" value={draft.name} onInput={(name) => set({ name })} hint="Else the beginning of what is said." />
          <TextField label="Time zone" value={draft.zone} onInput={(zone) => set({ zone })} list={ZONES} wrong={field === "zone" ? wrong : ""} eager />
        </div>
        <details>
          <summary>What if, and what it may do</summary>
          <div class="row fields">
            <SelectField label="While the run before goes on" value={draft.overlap} options={OVERLAPS} onChoose={(overlap) => set({ overlap })} />
            <SelectField label="Times when nobody was there" value={draft.missed} options={MISSED} onChoose={(missed) => set({ missed })} />
            <SelectField label="What policy asks about" value={draft.ask} options={ASKS} onChoose={(ask) => set({ ask })} />
          </div>
          <fieldset class="row fields">
            <legend>Quiet hours, in which it does not fire</legend>
            <TextField label="From" type="time" value={draft.from} onInput={(from) => set({ from })} />
            <TextField label="To" type="time" value={draft.to} onInput={(to) => set({ to })} wrong={half ? "Both, or neither." : ""} eager />
            <SelectField label="What falls into them fires" value={draft.then} options={THEN} onChoose={(then) => set({ then })} />
          </fieldset>
          <ScopeFields scopes={draft.scopes} onChange={(scopes) => set({ scopes })} />
          <div class="row fields">
            <SelectField label="Model" value={draft.model} options={[["", "the usual one"], ...(status.value?.models ?? []).map((each) => [each.name, each.name] as const)]} onChoose={(model) => set({ model })} />
            <TextField label="Folder it works in" mono value={draft.workspace} onInput={(workspace) => set({ workspace })} placeholder={status.value?.workspace ?? ""} />
          </div>
          <CheckField label="A new conversation each time" checked={draft.fresh} onChange={(fresh) => set({ fresh })} />
        </details>
        <Problem text={error || (field === "rest" || when.on === "webhook" ? wrong : "")} />
        <div class="row"><button type="submit" class="main" disabled={busy || !ready}>Save it</button><a class="button quiet" href={href("schedules")}>Leave it</a></div>
      </form>
    </Page>
  );
}
