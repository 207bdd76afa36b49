// A schedule, as a form: a new one, or one that is changed. While it is filled in, the daemon says when it would fire and what is wrong with it; nothing is saved before.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refused, wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { status } from "../core/store";
import { AreaField, CheckField, SelectField, TextField } from "../ui/form";
import { Page, useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import { Coming } from "./coming";
import { once } from "./one";
import { ScopeFields } from "./scopes";
import { ASKS, MISSED, OVERLAPS, THEN } from "./words";
import { asFields, asWords, BLANK, WhenFields, type When } from "./when";
import type { NewSchedule, Schedule, ShownSchedule, Subject } from "../types";

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
  return <ScheduleForm title="New schedule" />;
}

export function ChangeOne({ id }: { id: string }): VNode {
  const found = useLoaded(() => palyra.getSchedule(id), [id]);
  const schedule = found.value?.schedule;
  if (!schedule) return <Page title="Edit schedule" error={found.error}>{found.error ? null : <p role="status">Loading…</p>}</Page>;
  return <ScheduleForm title="Edit schedule" schedule={schedule} />;
}

function drafted(schedule: Schedule): Draft {
  const { text, name, zone = "UTC", overlap = "skip", missed = "skip", ask = "wait", quiet, scopes = [], model = "", workspace = "", fresh = false } = schedule;
  return { text, name, zone, overlap, missed, ask, from: quiet?.from ?? "", to: quiet?.to ?? "", then: quiet?.then ?? "later", scopes, model, workspace, fresh };
}

function ScheduleForm({ title, schedule }: { title: string; schedule?: Schedule }): VNode {
  const [when, setWhen] = useState<When>(schedule ? asFields(schedule.trigger, schedule.zone ?? "UTC") : BLANK);
  const [draft, setDraft] = useState<Draft>(schedule ? drafted(schedule) : EMPTY);
  const { error, busy, attempt } = useAttempt();
  const wanted = whole(draft, asWords(when));
  const { shown, wrong, field } = useForeseen(wanted);
  const set = (some: Partial<Draft>) => setDraft({ ...draft, ...some });
  const half = Boolean(draft.from) !== Boolean(draft.to);
  const ready = Boolean(wanted.text && wanted.when && shown && !wrong && !half);
  const save = () => attempt(async () => {
    const made = schedule ? await palyra.changeSchedule(schedule.schedule_id, wanted) : await palyra.addSchedule(wanted);
    if (made.secret) once.value = { id: made.schedule.schedule_id, secret: made.secret };
    go("schedules", made.schedule.schedule_id);
  }, "Saved.");
  const back = schedule ? href("schedules", schedule.schedule_id) : href("schedules");
  return (
    <Page title={title} actions={<a class="button quiet" href={href("schedules")}>All schedules</a>}>
      <form class="form wide" aria-label={title} onSubmit={(event) => { event.preventDefault(); if (ready) void save(); }}>
        <AreaField label="Prompt" value={draft.text} onInput={(text) => set({ text })} required placeholder="Summarise what changed in this folder since yesterday" />
        <WhenFields when={when} wrong={field === "when" ? wrong : ""} onChange={(some) => setWhen({ ...when, ...some })} />
        <section class={when.on === "cron" || when.on === "every" ? "foreseen five" : "foreseen"} aria-label="Preview" aria-live="polite">{shown && !wrong ? <Coming shown={shown} /> : <p class="hint">{wrong ? "No runs yet." : "The next runs appear here as you type."}</p>}</section>
        <div class="row fields">
          <TextField label="Name" value={draft.name} onInput={(name) => set({ name })} hint="Default: the beginning of the prompt." />
          <TextField label="Time zone" value={draft.zone} onInput={(zone) => set({ zone })} list={ZONES} wrong={field === "zone" ? wrong : ""} eager />
        </div>
        <details>
          <summary>Advanced</summary>
          <div class="row fields">
            <SelectField label="Overlapping runs" value={draft.overlap} options={OVERLAPS} onChoose={(overlap) => set({ overlap })} />
            <SelectField label="Missed runs" value={draft.missed} options={MISSED} onChoose={(missed) => set({ missed })} />
            <SelectField label="Calls that need approval" value={draft.ask} options={ASKS} onChoose={(ask) => set({ ask })} />
          </div>
          <fieldset class="row fields">
            <legend>Quiet hours</legend>
            <TextField label="From" type="time" value={draft.from} onInput={(from) => set({ from })} />
            <TextField label="To" type="time" value={draft.to} onInput={(to) => set({ to })} wrong={half ? "Enter both or neither." : ""} eager />
            <SelectField label="Runs in quiet hours" value={draft.then} options={THEN} onChoose={(then) => set({ then })} />
          </fieldset>
          <ScopeFields scopes={draft.scopes} onChange={(scopes) => set({ scopes })} />
          <div class="row fields">
            <SelectField label="Model" value={draft.model} options={[["", "default"], ...(status.value?.models ?? []).map((each) => [each.name, each.name] as const)]} onChoose={(model) => set({ model })} />
            <TextField label="Folder" mono value={draft.workspace} onInput={(workspace) => set({ workspace })} placeholder={status.value?.workspace ?? ""} />
          </div>
          <CheckField label="New session for each run" checked={draft.fresh} onChange={(fresh) => set({ fresh })} />
        </details>
        <Problem text={error || (field === "rest" || when.on === "webhook" ? wrong : "")} />
        <div class="row"><button type="submit" class="main" disabled={busy || !ready}>Save schedule</button><a class="button quiet" href={back}>Cancel</a></div>
      </form>
    </Page>
  );
}
