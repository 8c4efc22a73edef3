import * as z from "zod";

/** One measurement in machine-readable form. */
export const row = z.strictObject({
  suite: z.string().min(1),
  name: z.string().min(1),
  value: z.number(),
  unit: z.string().min(1),
  /** The baseline of the same run, with its value. */
  beside: z.string().nullable(),
  /** The value divided by the baseline's. */
  ratio: z.number().nullable(),
  aim: z.string().nullable(),
  /** True if there is no aim. */
  holds: z.boolean(),
});
export type Row = z.infer<typeof row>;

/** The target of the value itself, or of its ratio to the baseline. */
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

/** The aim is checked before rounding: 2.503 does not pass as 2.5. */
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
