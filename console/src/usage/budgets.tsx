// Limits on what models may cost: what is spent, what is left, whether it will last; setting, changing and removing them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { count, money, visible, when } from "../core/words";
import { Progress, SelectField, TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { BudgetState, Terms } from "../types";
import { usedUp, type MonthForecast } from "./month";

const PER = [["all", "everything together"], ["session", "each session"], ["run", "each run"], ["principal", "each who asks"], ["schedule", "each schedule"]] as const;
const EVERY = [["month", "each month"], ["day", "each day"], ["ever", "for good"]] as const;
const THEN = [["block", "stop the run and say so"], ["ask", "ask me"]] as const;
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
  return unit === "tokens" ? `${count(value)} tokens` : money(value);
}

export function Budgets({ changed, month }: { changed: number; month: MonthForecast | undefined }): VNode {
  const found = useLoaded(() => palyra.listBudgets(), [changed]);
  const [form, setForm] = useState<Form | undefined>();
  const { error, busy, attempt, forget } = useAttempt();
  const close = () => { setForm(undefined); forget(); };
  const save = (it: Form) => attempt(async () => {
    const { name, per, then, unit, who } = it;
    const much = Math.round(Number(it.amount) * (unit === "tokens" ? 1 : MICRO));
    await palyra.putBudget(name, { per, then, every: per === "run" ? "ever" : it.every, [unit]: much, who: per === "all" ? "" : who.trim(), warn_bps: Math.round(Number(it.warn) * 100) });
    setForm(undefined);
    found.again();
  }, "The budget holds.");
  const taken = (found.value?.budgets ?? []).map((each) => each.name);
  return (
    <Part id="budgets" title="Budgets">
      <Problem text={found.error || error} />
      {found.value && !found.value.budgets.length && !form && <p class="hint">There is no limit. With one, no call begins that could pass it.</p>}
      <ul class="cards" aria-label="Budgets">
        {found.value?.budgets.map((each) => (
          <Budget key={`${each.name} ${each.who} ${each.period}`} it={each} busy={busy} month={month} onChange={() => setForm(filled(each))}
            onRemove={() => void attempt(async () => { await palyra.removeBudget(each.name); found.again(); }, "The budget is removed.")} />
        ))}
      </ul>
      {form ? <BudgetForm key={form.known ? form.name : ""} form={form} taken={taken} busy={busy} onInput={setForm} onSave={() => void save(form)} onClose={close} />
        : (found.value || found.error) && <button type="button" onClick={() => setForm(BLANK)}>Set a budget</button>}
    </Part>
  );
}

function BudgetForm({ form, taken, busy, onInput, onSave, onClose }: { form: Form; taken: readonly string[]; busy: boolean; onInput: (form: Form) => void; onSave: () => void; onClose: () => void }): VNode {
  const wrong = {
    name: !form.name || form.known ? "" : !/^[a-z0-9][a-z0-9_-]{0,62}$/.test(form.name) ? "A name has small letters, digits, dashes and underscores." : taken.includes(form.name) ? "There is one of this name: change that one." : "",
    amount: !form.amount || Number(form.amount) > 0 ? "" : "A number above nothing.",
    warn: Number(form.warn) >= 0 && Number(form.warn) <= 100 && form.warn.trim() ? "" : "Percent, from 0 to 100. With 0 nobody is told.",
  };
  const ready = form.name && form.amount && !wrong.name && !wrong.amount && !wrong.warn;
  return (
    <form class="form" aria-label="Budget" onSubmit={(event) => { event.preventDefault(); if (ready) onSave(); }}>
      {form.known ? <p ref={focusFirst}>The budget <strong>{visible(form.name)}</strong>. What was spent so far counts against the new limit.</p>
        : <TextField label="Name" mono value={form.name} onInput={(name) => onInput({ ...form, name })} wrong={wrong.name} eager required placeholder="month" />}
      <div class="row fields">
        <TextField label="At most" value={form.amount} onInput={(much) => onInput({ ...form, amount: much })} wrong={wrong.amount} required placeholder="10" />
        <SelectField label="of" value={form.unit} options={UNITS} onChoose={(unit) => onInput({ ...form, unit })} />
      </div>
      <div class="row fields">
        <SelectField label="for" value={form.per} options={PER} onChoose={(per) => onInput({ ...form, per })} />
        {form.per !== "run" && <SelectField label="counted" value={form.every} options={EVERY} onChoose={(every) => onInput({ ...form, every })} />}
      </div>
      {form.per !== "all" && form.per !== "run" && <TextField label="Only for this one" mono value={form.who} onInput={(who) => onInput({ ...form, who })} hint={form.per === "principal" ? "The name of who asks. Empty: the limit holds for each of them by itself." : "Its id. Empty: the limit holds for each of them by itself."} />}
      <div class="row fields">
        <TextField label="Tell me at (percent)" value={form.warn} onInput={(warn) => onInput({ ...form, warn })} wrong={wrong.warn} eager />
        <SelectField label="When it is used up" value={form.then} options={THEN} onChoose={(then) => onInput({ ...form, then })} />
      </div>
      <div class="row"><button type="submit" class="main" disabled={busy || !ready}>{form.known ? "Change it" : "Set it"}</button><button type="button" class="quiet" onClick={onClose}>Leave it</button></div>
    </form>
  );
}

/** A form that opens somewhere else than it was asked for takes the focus there. */
function focusFirst(it: HTMLElement | null): void {
  it?.parentElement?.querySelector("input")?.focus();
}

function Budget({ it, busy, month, onChange, onRemove }: { it: BudgetState; busy: boolean; month: MonthForecast | undefined; onChange: () => void; onRemove: () => void }): VNode {
  const { terms, unit, limit } = it;
  const many = !it.who && terms.per !== undefined && terms.per !== "all";
  const whole = (terms.per ?? "all") === "all" && terms.every === "month";
  const gone = whole && month ? usedUp(it.left, unit, month) : "";
  return (
    <li class="card">
      <div class="row"><strong>{visible(it.name)}</strong><span class="hint">{visible(it.says)}</span>
        {!many && it.left <= 0 ? <Badge tone="bad">used up</Badge> : !many && terms.warn_bps !== 0 && it.spent >= (limit * (terms.warn_bps ?? 8_000)) / 10_000 && <Badge tone="warn">nearly used up</Badge>}
        {it.source === "config" && <Badge>from the config file</Badge>}</div>
      {many ? <p>{amount(limit, unit)} for {PER.find(([each]) => each === terms.per)?.[1]}.</p>
        : <Progress label={`Spent of ${visible(it.name)}`} done={it.spent} of={Math.max(1, limit)} words={`${amount(it.spent, unit)} of ${amount(limit, unit)}${it.who ? ` by ${visible(it.who)}` : ""}${it.reserved ? `, ${amount(it.reserved, unit)} held for calls under way` : ""}`} />}
      {whole && month && it.left > 0 && <p>{gone ? <><Badge tone="warn">will not last</Badge> By the trend it is used up about {gone}.</> : `By the trend ${amount(unit === "tokens" ? month.expected_tokens : month.expected_microusd, unit)} are spent when the month ends.`}</p>}
      <p class="hint">{terms.then === "ask" ? "When it is used up you are asked." : "When it is used up a run stops and says so."}{it.until_ms > 0 && ` It begins anew ${when(it.until_ms)}.`}</p>
      {it.source === "api" && <div class="row"><button type="button" class="small" disabled={busy} onClick={onChange}>Change…</button><Sure words="Remove…" question={`Remove the budget ${visible(it.name)}?`} yes="Remove it" disabled={busy} onYes={onRemove} /></div>}
    </li>
  );
}
