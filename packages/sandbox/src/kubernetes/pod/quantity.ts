import { PlatformError } from "@aenv/contract";

const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The value of a quantity such as `500m`, `2Gi` or `1e3`; throws `request.invalid` that names the field. */
export function quantityValue(text: string, field: string): number {
  const [, digits = "", suffix = ""] = /^([+]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|[+]?\.[0-9]+)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = FACTORS[suffix];
  if (digits === "" || factor === undefined)
    throw new PlatformError("request.invalid", `${field} is '${text}', which is no quantity of Kubernetes; write 500m, 2 or 512Mi`);
  return Number(digits) * factor;
}

/** The smaller one, as it was written. */
export function smaller(a: string, b: string, field: string): string {
  return quantityValue(a, field) <= quantityValue(b, field) ? a : b;
}

/** Processors in thousandths, as Kubernetes counts them. */
export function cpuQuantity(cpus: number): string {
  const thousandths = Math.max(1, Math.round(cpus * 1_000));
  return thousandths % 1_000 === 0 ? String(thousandths / 1_000) : `${thousandths}m`;
}

export function mebibytes(mb: number): string {
  return `${Math.ceil(mb)}Mi`;
}
