// Numbers as people read them: short forms, times of day, and changes against a period before.
import { count } from "../core/words";

const UNITS = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]] as const;

/** 16.3 M, 12.4 k; below ten thousand every digit. */
export function short(value: number): string {
  if (Math.abs(value) < 10_000) return count(Math.round(value));
  const [size, unit] = UNITS.find(([each]) => Math.abs(value) >= each)!;
  const scaled = value / size;
  return `${scaled.toFixed(scaled < 100 ? 1 : 0).replace(/\.0$/, "")} ${unit}`;
}

export { clock, day } from "../core/words";

/** +12 %, −4 %; nothing where there is nothing to compare with. */
export function change(now: number, before: number): string {
  if (before <= 0) return "";
  const percent = Math.round(((now - before) / before) * 100);
  return percent === 0 ? "±0 %" : percent > 999 ? `×${short(now / before)}` : `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}

/** Marks of an axis that people read easily: 1, 2 or 5 times a power of ten, from nothing up to what holds the greatest value. */
export function ticks(highest: number, most = 4): number[] {
  if (!(highest > 0)) return [0, 1];
  const raw = highest / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((each) => each * power >= raw)! * power;
  return Array.from({ length: Math.ceil(highest / step - 1e-9) + 1 }, (_, at) => at * step);
}

/** 5.7 MB, 71.9 GB. */
export function bytes(value: number): string {
  const unit = ["bytes", "kB", "MB", "GB", "TB"].map((name, power) => [1000 ** power, name] as const).findLast(([each]) => value >= each) ?? [1, "bytes"] as const;
  return `${unit[0] === 1 ? value : (value / unit[0]).toFixed(1).replace(/\.0$/, "")} ${unit[1]}`;
}
