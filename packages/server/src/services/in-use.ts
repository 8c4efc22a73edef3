import { type InstanceRow, isLive } from "../instances/row.ts";
import type { Collection } from "../stores/collection.ts";
import type { ServiceRow } from "./row.ts";

/** Whether live instances or services use a version, which then cannot be deleted. */
export function inUse(
  rows: Collection<InstanceRow>,
  services: Collection<ServiceRow>,
): (name: string, version: string) => Promise<boolean> {
  return async (name, version) => {
    for await (const { value } of services.each({ index: "environment", value: name })) {
      if (value.environment.version === version) return true;
    }
    for await (const { value: row } of rows.each({ index: "environment", value: name })) {
      if (isLive(row) && row.environment.version === version) return true;
    }
    return false;
  };
}
