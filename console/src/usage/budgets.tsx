// Limits on what models may cost: what is spent, what is left, and setting another.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { get, put, remove } from "../core/api";
import { lastEntry } from "../core/store";
import { count, money, visible, when } from "../core/words";
import { Progress, SelectField, TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { BudgetList, BudgetState, palyra_runtime_forecasts_Forecast } from "../types";

const PER = [["all", "everything together"], ["session", "each session"], ["run", "each run"], ["principal", "each who asks"], ["schedule", "each schedule"]] as const;
const EVERY = [["month", "each month"], ["day", "each day"], ["ever", "for good"]] as const;
const THEN = [["block", "stop the run and say so"], ["ask", "ask me"]] as const;
const UNITS = [["microusd", "dollars"], ["tokens", "tokens"]] as const;
const BLANK = { name: "", amount: "", unit: "microusd" as "microusd" | "tokens", per: "all" as (typeof PER)[number][0], every: "month" as (typeof EVERY)[number][0], then: "block" as "block" | "ask" };

function amount(value: number, unit: string): string {
  return unit === "tokens" ? `${count(value)} tokens` : money(value);
}

export function Budgets(): VNode {
  const kind = lastEntry.value?.kind ?? "";
  const changed = kind === "model.replied" || kind === "admin.changed" ? lastEntry.value!.position : 0;
  const found = useLoaded(() => get<BudgetList>("/v1/budgets"), [changed]);
  const month = useLoaded(() => get<palyra_runtime_forecasts_Forecast>("/v1/usage/forecast"), [changed]).value;
  const [form, setForm] = useState<typeof BLANK | undefined>();
  const { error, busy, attempt } = useAttempt();
  const wrong = {
    name: !form?.name || /^[a-z0-9][a-z0-9_-]{0,62}$/.test(form.name) ? "" : "A name has small letters, digits, dashes and underscores.",
    amount: !form?.amount || Number(form.amount) > 0 ? "" : "A number above nothing.",
  };
  const save = () => attempt(async () => {
    const { name, per, every, then, unit } = form!;
    const much = Math.round(Number(form!.amount) * (unit === "tokens" ? 1 : 1_000_000));
    await put(`/v1/budgets/${name}`, { per, every, then, [unit]: much });
    setForm(undefined);
    found.again();
  }, "The budget holds.");
  return (
    <Part id="budgets" title="Budgets">
      <Problem text={found.error || error} />
      {month && month.spent_tokens > 0 && <p>This month so far: {count(month.spent_tokens)} tokens, {money(month.spent_microusd)}. By the trend it ends at about {count(month.expected_tokens)} tokens, {money(month.expected_microusd)}.{month.unpriced ? ` The price of ${count(month.unpriced)} calls is not known.` : ""}</p>}
      {found.value && !found.value.budgets.length && !form && <p class="hint">There is no limit. With one, no call begins that could pass it.</p>}
      <ul class="cards" aria-label="Budgets">
        {found.value?.budgets.map((each) => <Budget key={`${each.name} ${each.who} ${each.period}`} it={each} busy={busy} onRemove={() => void attempt(async () => { await remove(`/v1/budgets/${each.name}`); found.again(); }, "The budget is removed.")} />)}
      </ul>
      {form ? (
        <form class="form" aria-label="Budget" onSubmit={(event) => { event.preventDefault(); if (!wrong.name && !wrong.amount) void save(); }}>
          <TextField label="Name" mono value={form.name} onInput={(name) => setForm({ ...form, name })} wrong={wrong.name} eager required placeholder="month" />
          <div class="row fields">
            <TextField label="At most" value={form.amount} onInput={(much) => setForm({ ...form, amount: much })} wrong={wrong.amount} required placeholder="10" />
            <SelectField label="of" value={form.unit} options={UNITS} onChoose={(unit) => setForm({ ...form, unit })} />
          </div>
          <div class="row fields">
            <SelectField label="for" value={form.per} options={PER} onChoose={(per) => setForm({ ...form, per })} />
            <SelectField label="counted" value={form.every} options={EVERY} onChoose={(every) => setForm({ ...form, every })} />
          </div>
          <SelectField label="When it is used up" value={form.then} options={THEN} onChoose={(then) => setForm({ ...form, then })} />
          <div class="row"><button type="submit" class="main" disabled={busy || !form.name || !form.amount || Boolean(wrong.name || wrong.amount)}>Set it</button><button type="button" class="quiet" onClick={() => setForm(undefined)}>Leave it</button></div>
        </form>
      ) : <button type="button" onClick={() => setForm(BLANK)}>Set a budget</button>}
    </Part>
  );
}

function Budget({ it, busy, onRemove }: { it: BudgetState; busy: boolean; onRemove: () => void }): VNode {
  const full = it.left <= 0;
  return (
    <li class="card">
      <div class="row"><strong>{visible(it.name)}</strong><span class="hint">{visible(it.says)}</span>{full && <Badge tone="bad">used up</Badge>}{it.source === "config" && <Badge>from the config file</Badge>}</div>
      <Progress label={`Spent of ${it.name}`} done={it.spent} of={Math.max(1, it.limit)} words={`${amount(it.spent, it.unit)} of ${amount(it.limit, it.unit)}${it.reserved ? `, ${amount(it.reserved, it.unit)} held for calls under way` : ""}`} />
      <div class="row">{it.until_ms > 0 && <span class="hint">begins anew {when(it.until_ms)}</span>}{it.source === "api" && <Sure words="Remove…" question={`Remove the budget ${it.name}?`} yes="Remove it" disabled={busy} onYes={onRemove} />}</div>
    </li>
  );
}
