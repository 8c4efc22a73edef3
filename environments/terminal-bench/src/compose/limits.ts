import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { mebibytesOf } from "./values.ts";

/** The limits of a service; null for those that it does not have. */
export interface ComposeLimits {
  readonly memoryMb: number | null;
  readonly cpus: number | null;
  readonly processes: number | null;
}

/** Those of `deploy.resources.limits`, else the older `mem_limit`, `cpus` and `pids_limit` beside it. */
export function parseLimits(service: Readonly<Record<string, unknown>>, at: string): ComposeLimits {
  const deploy = isTable(service.deploy) ? service.deploy : {};
  const resources = isTable(deploy.resources) ? deploy.resources : {};
  if (isTable(resources.reservations) && resources.reservations.devices != null)
    throw new InvalidValue(`${at}.deploy.resources.reservations.devices`, "sandboxes have no devices");
  const limits = isTable(resources.limits) ? resources.limits : {};
  const memory = limits.memory ?? service.mem_limit;
  const cpus = limits.cpus ?? service.cpus;
  const processes = limits.pids ?? service.pids_limit;
  return {
    // Docker takes 0 for no limit, and for processes -1 too.
    memoryMb: isNone(memory) ? null : mebibytesOf(memory, `${at}.mem_limit`),
    cpus: isNone(cpus) ? null : numberOf(cpus, `${at}.cpus`),
    processes: isNone(processes) || Number(processes) === -1 ? null : wholeNumberOf(processes, `${at}.pids_limit`),
  };
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null || value === "" || Number(value) === 0;
}

function numberOf(value: unknown, at: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0) return number;
  throw new InvalidValue(at, `'${value}' is not a number above 0`);
}

function wholeNumberOf(value: unknown, at: string): number {
  const number = numberOf(value, at);
  if (Number.isSafeInteger(number)) return number;
  throw new InvalidValue(at, `'${value}' is not a whole number`);
}
