import { PyError } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import type { Domain } from "../../core/domain.ts";
import type { Environment } from "../../core/environment.ts";
import { TelecomUserDb } from "../../domains/telecom/phone/model.ts";
import { writeJson } from "../../python/json/writer.ts";
import { MODEL } from "../../python/values/objects.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { comparable } from "./calls.ts";
import { dictAt, listAt } from "./vectors.ts";

/** Replays an episode of operations: tool calls, calls of helpers, and direct edits of the phone. */
export function replayOperations(domain: Domain, record: Dict, index: number, tally: Tally): void {
  const environment = domain.create({ isSolo: record.get("solo") === true });
  let wanted: unknown = null;
  for (const [i, operation] of listAt(record, "ops").entries()) {
    if (!(operation instanceof Dict)) throw new Error("a recorded operation is not an object");
    const vector = comparable(operation);
    const kind = textAt(operation, "k");
    const name = textAt(operation, "n");
    const where = `episode ${index}, operation ${i}: ${kind} ${name} ${writeJson(dictAt(operation, "a"))}`;
    if (kind === "call") {
      const requestor = textAt(operation, "q") === "user" ? "user" : "assistant";
      const { content, error } = environment.getResponse({ id: "", name, requestor, arguments: dictAt(operation, "a") });
      tally.compare("operation call", where, [content, error], [vector.c, vector.e]);
    } else if (kind === "fn") {
      const got = outcomeOf(environment, textAt(operation, "t"), name, dictAt(operation, "a"));
      tally.compare("operation fn", where, got, "x" in vector ? { x: vector.x } : { r: vector.r });
    } else if (!edit(environment, name, dictAt(operation, "s"))) tally.compare("operation", where, "unknown edit", name);
    // The vectors do not repeat unchanged hashes, and have none before the first.
    wanted = vector.h ?? wanted;
    if (wanted !== null) tally.compare("operation hash", where, environment.hashes(), wanted);
  }
}

function outcomeOf(environment: Environment, env_type: string, func_name: string, args: Dict): unknown {
  try {
    return { r: JSON.parse(writeJson(environment.runFunction({ env_type, func_name, arguments: args }))) };
  } catch (error) {
    if (error instanceof PyError) return { x: error.message };
    throw error;
  }
}

/** Applies an edit to the phone's device; false if the edit is unknown. */
function edit({ userTools }: Environment, name: string, signals: Dict): boolean {
  const database = userTools?.db ?? null;
  if (userTools === null || !TelecomUserDb.isInstance(database)) return false;
  const { device, surroundings } = database;
  switch (name) {
    case "wifi":
      set(device, { wifi_enabled: true, wifi_connected: true, wifi_ssid: "Home é", wifi_signal_strength: "fair" });
      return true;
    case "wifinossid":
      set(device, { wifi_enabled: true, wifi_connected: true, wifi_ssid: null });
      return true;
    case "vpnset":
      set(device, { vpn_enabled_setting: !device.vpn_enabled_setting });
      return true;
    case "battery":
      set(device, { battery_level: 7 });
      return true;
    case "vpnnone":
      set(device, { vpn_details: null });
      return true;
    case "sig":
      set(surroundings, { signal_strength: signals });
      return true;
    case "appnone":
      device.app_statuses.delete("messaging");
      return true;
    default:
      return false;
  }
}

/** Validates the values as a new record would, and assigns them. */
function set(record: TelecomUserDb["device"] | TelecomUserDb["surroundings"], values: Readonly<Record<string, PyValue>>): void {
  const read = record[MODEL].create(values);
  for (const field of Object.keys(values)) Object.assign(record, { [field]: Reflect.get(read, field) });
}
