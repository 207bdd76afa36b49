// What comes: the next five times of a schedule, and what thirty days of it may take.
import type { VNode } from "preact";
import { count, many, money, visible } from "../core/words";
import { whenWords } from "./words";
import type { ShownSchedule } from "../types";

export function Coming({ shown }: { shown: ShownSchedule }): VNode {
  const times = shown.upcoming_shown ?? [];
  const forecast = shown.forecast;
  const basis = forecast?.runs || forecast?.like || 0;
  return (
    <>
      <p>Runs <strong><bdi>{visible(whenWords(shown))}</bdi></strong>.</p>
      {times.length > 0 && <ol class="times" aria-label="Next runs">{times.map((each, at) => <li key={at}><time dateTime={new Date(shown.upcoming![at]!).toISOString()}>{each}</time></li>)}</ol>}
      {forecast && <p class="hint" aria-label="Forecast">{times.length > 0 && <>{many(forecast.firings_a_month, "time")} in the next 30 days. </>}
        {basis ? <>{forecast.runs ? "From its last" : "From your last"} {basis === 1 ? "run" : `${count(basis)} runs`}: {count(forecast.tokens_a_run ?? 0)} tokens and {money(forecast.cost_microusd_a_run ?? 0)} per run, {money(forecast.cost_microusd_a_month ?? 0)} in 30 days.</> : "The cost is known after the first run."}</p>}
    </>
  );
}
