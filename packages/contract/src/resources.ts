import * as z from "zod";
import { PlatformError } from "./errors.ts";

/** An amount as in Kubernetes. */
export const quantity = z.string().regex(/^\d+(?:\.\d+)?(?:m|C|[kKMGTPE]i?)?$/, 'must be a quantity such as "1", "500m" or "2Gi"');

const POWERS = ["", "k", "m", "g", "t", "p", "e"];

/** MiB of a quantity such as `2Gi` or `500M`; null for one that is no amount of memory, such as `500m` or `1C`, or less than one. */
export function mebibytesOf(text: string): number | null {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)([kKMGTPE]?i?)$/.exec(text) ?? [];
  if (number === undefined) return null;
  const base = unit.endsWith("i") ? 1_024 : 1_000;
  const bytes = Number(number) * base ** POWERS.indexOf(unit.replace("i", "").toLowerCase());
  const mebibytes = Math.floor(bytes / 1_024 ** 2);
  return mebibytes < 1 ? null : mebibytes;
}

/** Processors of a quantity such as `2`, `500m` or `1C`; null for one that is no number of processors. */
export function cpusOf(text: string): number | null {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(m|C)?$/.exec(text) ?? [];
  if (number === undefined || Number(number) === 0) return null;
  return unit === "m" ? Number(number) / 1_000 : Number(number);
}

const processors = { parse: cpusOf, example: 'a number of processors, such as "2" or "500m"' };
const size = { parse: mebibytesOf, example: 'a size, such as "2Gi" or "500M"' };

/** A limit, and the fields with which each section asks for it. What is absent cannot be asked for there. */
interface LimitRow extends Partial<typeof size> {
  readonly deployConfig?: string;
  readonly taskSandboxes?: string;
  /** In the request with which an environment's code opens a sandbox. */
  readonly open?: string;
}

/** The limits of a sandbox. */
const limits = {
  /** Processors, also fractions. */
  cpus: { deployConfig: "cpu", taskSandboxes: "cpu", open: "cpus", ...processors },
  memoryMb: { deployConfig: "memory", taskSandboxes: "memory", open: "memory_mb", ...size },
  /** How much it may write to its files. */
  diskMb: { deployConfig: "ephemeralStorage", taskSandboxes: "disk", open: "disk_mb", ...size },
  /** The size of `/dev/shm`, which is memory of the sandbox; 64 if absent. */
  shmMb: { deployConfig: "shmMb", taskSandboxes: "shmMb" },
  /** Processes and threads, at most those that the engine gives to any sandbox. */
  processes: { open: "processes" },
  /** CPU time of each process; the system ends one that used more. */
  cpuSeconds: {},
} as const satisfies Record<string, LimitRow>;
export type Limit = keyof typeof limits;
export const limitNames = Object.keys(limits) as readonly Limit[];

/** What one sandbox may use at most. The engine decides about a limit that is absent. */
export type Resources = { readonly [L in keyof typeof limits]?: number };

/** Those that an environment's code may choose when it opens a sandbox. */
export type OpenLimits = {
  readonly [L in keyof typeof limits as (typeof limits)[L] extends { readonly open: string } ? L : never]?: number;
};

const shmMb = z.number().int().min(1).max(1_048_576).optional();

/** The limits of `deployConfig`. `shmMb` is for engines that isolate. */
export const deployLimits = {
  cpu: quantity.optional(),
  memory: quantity.optional(),
  ephemeralStorage: quantity.optional(),
  shmMb,
};

/** The limits of `deployConfig.taskSandboxes`, for each sandbox. */
export const taskLimits = { memory: quantity.optional(), cpu: quantity.optional(), disk: quantity.optional(), shmMb };

/** The limits of a request to open a sandbox. */
export const openLimits = {
  memory_mb: z.int().min(1).optional(),
  cpus: z.number().positive().optional(),
  disk_mb: z.int().min(1).optional(),
  processes: z.int().min(1).optional(),
};

type Section = "deployConfig" | "taskSandboxes" | "open";
type Field<S extends Section> = Extract<(typeof limits)[Limit], Record<S, string>>[S];

const rows = Object.entries(limits) as [Limit, LimitRow][];

/** The limits that a section asks for, with their fields there. */
export function limitFields<S extends Section>(section: S): readonly { readonly limit: Limit; readonly field: Field<S> }[] {
  return rows.flatMap(([limit, { [section]: field }]) => (field === undefined ? [] : [{ limit, field: field as Field<S> }]));
}

/** Where config.json asks for a limit. */
export function limitPath(section: "deployConfig" | "taskSandboxes", limit: Limit): string {
  const { [section]: field }: LimitRow = limits[limit];
  return `deployConfig.${section === "taskSandboxes" ? "taskSandboxes." : ""}${field}`;
}

/** The limits among the fields of a wider value. */
export function pickResources(value: Resources): Resources {
  return Object.fromEntries(rows.flatMap(([limit]) => (value[limit] === undefined ? [] : [[limit, value[limit]]])));
}

/** Limits as a request to open a sandbox names them. */
export function openLimitsOf(value: OpenLimits): { readonly [F in Field<"open">]?: number } {
  const given: Resources = value;
  return Object.fromEntries(limitFields("open").flatMap(({ limit, field }) => (given[limit] === undefined ? [] : [[field, given[limit]]])));
}

/** The limits that a section of config.json asks for, of those in `only`. A text that is no amount is an error. */
export function readLimits(
  ref: string,
  section: "deployConfig" | "taskSandboxes",
  values: Readonly<Record<string, unknown>> = {},
  only?: readonly Limit[],
): Resources {
  const found: Partial<Record<Limit, number>> = {};
  for (const { limit, field } of limitFields(section)) {
    const value = values[field];
    if (value === undefined || only?.includes(limit) === false) continue;
    const { parse = Number, example = "a number" }: LimitRow = limits[limit];
    const amount = parse(String(value));
    if (amount === null)
      throw new PlatformError("environment.invalid", `${limitPath(section, limit)} of ${ref} is '${value}', which is not ${example}`);
    found[limit] = amount;
  }
  return found;
}

/** A program that fills `/dev/shm` must not be ended for want of memory, so it must fit into the memory of the sandbox. */
export function assertShmFits(ref: string, section: "deployConfig" | "taskSandboxes", { shmMb, memoryMb }: Resources): void {
  if (shmMb === undefined || memoryMb === undefined || shmMb < memoryMb) return;
  throw new PlatformError(
    "environment.invalid",
    `${limitPath(section, "shmMb")} of ${ref} is ${shmMb}, and its sandboxes have ${memoryMb} MiB of memory, of which /dev/shm is a part; choose less, or more 'memory' beside it`,
  );
}
