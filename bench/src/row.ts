import * as z from "zod";

/** One measurement as programs read it. */
export const row = z.strictObject({
  suite: z.string().min(1),
  name: z.string().min(1),
  value: z.number(),
  unit: z.string().min(1),
  /** What it was measured against in the same run, with its own value. */
  beside: z.string().nullable(),
  /** The value divided by that of `beside`. */
  ratio: z.number().nullable(),
  aim: z.string().nullable(),
  /** True where there is no aim. */
  holds: z.boolean(),
});
export type Row = z.infer<typeof row>;

/** What we want to be true, of the value itself or of its ratio to what runs beside it. */
export interface Aim {
  readonly of: "value" | "ratio";
  readonly is: "at most" | "at least";
  readonly limit: number;
}

export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly beside?: { readonly what: string; readonly value: number };
  readonly aim?: Aim;
}

/** Judged before it is rounded: 2.503 does not pass as 2.5. */
export function toRow(suite: string, { name, value, unit, beside, aim }: Measurement): Row {
  const ratio = beside === undefined ? null : value / beside.value;
  return {
    suite,
    name,
    value: round(value),
    unit,
    beside: beside === undefined ? null : `${beside.what}: ${round(beside.value)} ${unit}`,
    ratio: ratio === null ? null : round(ratio),
    aim: aim === undefined ? null : `${aim.of} ${aim.is === "at most" ? "<=" : ">="} ${aim.limit}`,
    holds: aim === undefined || isReached(aim, aim.of === "value" ? value : ratio),
  };
}

function isReached({ is, limit }: Aim, measured: number | null): boolean {
  if (measured === null) return false;
  return is === "at most" ? measured <= limit : measured >= limit;
}

/** Four digits: more would be noise. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
