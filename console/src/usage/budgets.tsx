// Budgets: what is spent and left, a burn-down with the forecast, and setting, changing and removing them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { money, visible, when } from "../core/words";
import { Progress, SelectField, TextField } from "../ui/form";
import { Sure, useAttempt, useLoaded, type Loaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Plot } from "../ui/plot";
import { clock, short } from "../ui/figures";
import type { BudgetList, BudgetState, Terms } from "../types";
import { cumulative, spentIn, usedUp, type MonthForecast, type Unit } from "./month";

const PER = [["all", "all usage"], ["session", "each session"], ["run", "each run"], ["principal", "each user"], ["schedule", "each schedule"]] as const;
const EVERY = [["month", "every month"], ["day", "every day"], ["ever", "never"]] as const;
const THEN = [["block", "stop the run"], ["ask", "ask me"]] as const;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const UNITS = [["microusd", "dollars"], ["tokens", "tokens"]] as const;
const MICRO = 1_000_000;

interface Form {
  name: string;
  amount: string;
  unit: "microusd" | "tokens";
  per: NonNullable<Terms["per"]>;
  every: NonNullable<Terms["every"]>;
  then: NonNullable<Terms["then"]>;
  who: string;
  warn: string;
  /** It is there already: then its name stays. */
  known: boolean;
}

const BLANK: Form = { name: "", amount: "", unit: "microusd", per: "all", every: "month", then: "block", who: "", warn: "80", known: false };

function filled({ name, terms, limit, unit }: BudgetState): Form {
  const tokens = unit === "tokens";
  return {
    name, amount: String(tokens ? limit : limit / MICRO), unit: tokens ? "tokens" : "microusd", per: terms.per ?? "all", every: terms.every ?? "ever",
    then: terms.then ?? "block", who: terms.who ?? "", warn: String((terms.warn_bps ?? 8_000) / 100), known: true,
  };
}

function amount(value: number, unit: string): string {
  return unit === "tokens" ? `${short(value)} tokens` : money(value);
}

export function Budgets({ found, changed, month }: { found: Loaded<BudgetList>; changed: number; month: MonthForecast | undefined }): VNode {
  const [form, setForm] = useState<Form | undefined>();
  const { error, busy, attempt, forget } = useAttempt();
  const close = () => { setForm(undefined); forget(); };
  const save = (it: Form) => attempt(async () => {
    const { name, per, then, unit, who } = it;
    const much = Math.round(Number(it.amount) * (unit === "tokens" ? 1 : MICRO));
    await palyra.putBudget(name, { per, then, every: per === "run" ? "ever" : it.every, [unit]: much, who: per === "all" ? "" : who.trim(), warn_bps: Math.round(Number(it.warn) * 100) });
    setForm(undefined);
    found.again();
  }, "Budget saved.");
  const all = found.value?.budgets ?? [];
  return (
    <section class="box" aria-labelledby="part-budgets">
      <div class="box-head"><h2 id="part-budgets">Budgets</h2>{!form && (found.value || found.error) && <button type="button" class="small" onClick={() => setForm(BLANK)}>Add budget</button>}</div>
      <Problem text={found.error || error} />
      {found.value && !all.length && !form && <p class="hint">No budgets. With a budget, Palyra starts no call that could exceed it.</p>}
      {form && <BudgetForm key={form.known ? form.name : ""} form={form} taken={all.map((each) => each.name)} busy={busy} onInput={setForm} onSave={() => void save(form)} onClose={close} />}
      <ul class="budgets" aria-label="Budgets">
        {all.map((each) => (
          <Budget key={`${each.name} ${each.who} ${each.period}`} it={each} busy={busy} changed={changed} month={month} onChange={() => setForm(filled(each))}
            onRemove={() => void attempt(async () => { await palyra.removeBudget(each.name); found.again(); }, "Budget removed.")} />
        ))}
      </ul>
    </section>
  );
}

function BudgetForm({ form, taken, busy, onInput, onSave, onClose }: { form: Form; taken: readonly string[]; busy: boolean; onInput: (form: Form) => void; onSave: () => void; onClose: () => void }): VNode {
  const wrong = {
    name: !form.name || form.known ? "" : !/^[a-z0-9][a-z0-9_-]{0,62}$/.test(form.name) ? "Use lowercase letters, digits, dashes and underscores." : taken.includes(form.name) ? "This name is taken. Edit that budget instead." : "",
    amount: !form.amount || Number(form.amount) > 0 ? "" : "Enter a number greater than 0.",
    warn: Number(form.warn) >= 0 && Number(form.warn) <= 100 && form.warn.trim() ? "" : "Percent, from 0 to 100. 0 sends no notice.",
  };
  const ready = form.name && form.amount && !wrong.name && !wrong.amount && !wrong.warn;
  return (
    <form class="form" aria-label="Budget" onSubmit={(event) => { event.preventDefault(); if (ready) onSave(); }}>
      {form.known ? <p ref={focusFirst}>Budget <strong>{visible(form.name)}</strong>. Spending so far counts against the new limit.</p>
        : <TextField label="Name" mono value={form.name} onInput={(name) => onInput({ ...form, name })} wrong={wrong.name} eager required placeholder="month" />}
      <div class="row fields">
        <TextField label="Limit" value={form.amount} onInput={(much) => onInput({ ...form, amount: much })} wrong={wrong.amount} required placeholder="10" />
        <SelectField label="Unit" value={form.unit} options={UNITS} onChoose={(unit) => onInput({ ...form, unit })} />
      </div>
      <div class="row fields">
        <SelectField label="Applies to" value={form.per} options={PER} onChoose={(per) => onInput({ ...form, per })} />
        {form.per !== "run" && <SelectField label="Resets" value={form.every} options={EVERY} onChoose={(every) => onInput({ ...form, every })} />}
      </div>
      {form.per !== "all" && form.per !== "run" && <TextField label="Only for" mono value={form.who} onInput={(who) => onInput({ ...form, who })} hint={form.per === "principal" ? "User name. Leave empty to apply to each user separately." : "Id. Leave empty to apply to each one separately."} />}
      <div class="row fields">
        <TextField label="Notify at (percent)" value={form.warn} onInput={(warn) => onInput({ ...form, warn })} wrong={wrong.warn} eager />
        <SelectField label="When used up" value={form.then} options={THEN} onChoose={(then) => onInput({ ...form, then })} />
      </div>
      <div class="row"><button type="submit" class="main" disabled={busy || !ready}>{form.known ? "Save changes" : "Add budget"}</button><button type="button" class="quiet" onClick={onClose}>Cancel</button></div>
    </form>
  );
}

/** A form that opens somewhere else than it was asked for takes the focus there. */
function focusFirst(it: HTMLElement | null): void {
  it?.parentElement?.querySelector("input")?.focus();
}

function Budget({ it, busy, changed, month, onChange, onRemove }: { it: BudgetState; busy: boolean; changed: number; month: MonthForecast | undefined; onChange: () => void; onRemove: () => void }): VNode {
  const { terms, unit, limit } = it;
  const many = !it.who && terms.per !== undefined && terms.per !== "all";
  const whole = (terms.per ?? "all") === "all";
  const gone = whole && terms.every === "month" && month ? usedUp(it.left, unit, month) : "";
  const near = terms.warn_bps !== 0 && it.spent >= (limit * (terms.warn_bps ?? 8_000)) / 10_000;
  return (
    <li class="card">
      <div class="row"><strong>{visible(it.name)}</strong><span class="hint">{visible(/\(([^()]*)\)$/.exec(it.says)?.[1] ?? it.says)}</span>
        {!many && it.left <= 0 ? <Badge tone="bad">Used up</Badge> : !many && near && <Badge tone="warn">Almost used up</Badge>}
        {it.source === "config" && <Badge>Config file</Badge>}</div>
      {many ? <p>{amount(limit, unit)} for {PER.find(([each]) => each === terms.per)?.[1]}</p>
        : <Progress label={`Spent of ${visible(it.name)}`} done={it.spent} of={Math.max(1, limit)} words={`${amount(it.spent, unit)} of ${amount(limit, unit)}${it.who ? ` by ${visible(it.who)}` : ""}${it.reserved ? `, ${amount(it.reserved, unit)} reserved for running calls` : ""}`} />}
      {whole && month && (terms.every === "month" || terms.every === "day") && <BurnDown it={it} changed={changed} month={month} />}
      {whole && terms.every === "month" && month && it.left > 0 && <p>{gone ? <><Badge tone="warn">Runs out</Badge> Used up around {gone} at this rate.</> : `${amount(unit === "tokens" ? month.expected_tokens : month.expected_microusd, unit)} expected by the end of the month.`}</p>}
      <p class="hint">{terms.then === "ask" ? "Asks you when used up." : "Stops the run when used up."}{it.until_ms > 0 && ` Resets ${when(it.until_ms)}.`}</p>
      {it.source === "api" && <div class="row"><button type="button" class="small" disabled={busy} onClick={onChange}>Edit…</button><Sure words="Remove…" question={`Remove the budget ${visible(it.name)}?`} yes="Remove budget" disabled={busy} onYes={onRemove} /></div>}
    </li>
  );
}

/** What is left of a budget over its period: so far, and by the forecast with its band. */
function BurnDown({ it, changed, month }: { it: BudgetState; changed: number; month: MonthForecast }): VNode {
  const unit: Unit = it.unit === "tokens" ? "tokens" : "microusd";
  const daily = it.terms.every === "day";
  const from = daily ? Math.floor(Date.now() / DAY_MS) * DAY_MS : month.from_ms;
  const found = useLoaded(() => palyra.usage({ by: daily ? "hour" : "day", since_ms: from, limit: 40, everybody: true }), [changed, from]);
  if (!found.value) return <div class="plot-wait low" />;
  const left = (spent: number | null) => (spent == null ? null : Math.max(0, it.limit - spent));
  const says = (value: number) => (unit === "tokens" ? short(value) : money(value));
  if (!daily) {
    const { labels, spent, trend, low, high } = cumulative(month, found.value.usage, unit);
    return <Plot title="Left" sub="Burn-down with 80 % forecast band" across="Days" height={150} labels={labels} unit={says} shape="area" band={{ words: "80 % band", low: high.map(left), high: low.map(left) }}
      lines={[{ words: "left", tone: "accent", values: spent.map(left) }, { words: "forecast", tone: "info", values: trend.map(left), dashed: true }]} />;
  }
  const now = Math.floor((Date.now() - from) / HOUR_MS);
  const known = new Map(found.value.usage.map((row) => [Number(row.group) - from / HOUR_MS, spentIn(row, unit)]));
  let sum = 0;
  const spent = Array.from({ length: 24 }, (_, hour) => (hour > now ? null : (sum += known.get(hour) ?? 0)));
  return <Plot title="Left" sub="Burn-down of today" across="Hours" height={150} labels={spent.map((_, hour) => clock(from + hour * HOUR_MS, false))} unit={says} shape="area" lines={[{ words: "left", tone: "accent", values: spent.map(left) }]} />;
}
