import { attributeError } from "@aenv/benchmark";
import { isTruthy, lookup } from "../../../python/equality.ts";
import { roundFloat } from "../../../python/numbers.ts";
import type { PyEnum } from "../../../python/values/enums.ts";
import { attribute } from "../../../python/values/objects.ts";
import { typeName } from "../../../python/values/types.ts";
import type { PyValue } from "../../../python/values/values.ts";
import {
  ApnName,
  ApnSettings,
  NetworkModePreference,
  NetworkStatus,
  NetworkTechnology,
  PerformanceLevel,
  type PhoneDevice,
  SignalStrength,
  SimStatus,
  type TelecomUserDb,
  type UserSurroundings,
} from "./model.ts";

export const deviceOf = (db: TelecomUserDb): PhoneDevice => attribute(db, "device");
export const surroundingsOf = (db: TelecomUserDb): UserSurroundings => attribute(db, "surroundings");

export function simStatusOf(device: PhoneDevice): PyEnum {
  return device.sim_card_missing ? SimStatus.MISSING : device.sim_card_status;
}

/** The APN settings. They may have been overwritten with any value; then the error names the field `wanted`. */
export function apnOf(device: PhoneDevice, wanted: (keyof ApnSettings & string) | "model_copy"): ApnSettings {
  const settings: PyValue = device.active_apn_settings;
  if (!ApnSettings.isInstance(settings)) throw attributeError(typeName(settings), wanted);
  return settings;
}

/** Searches for a network and updates the connection. Whether mobile data works is checked elsewhere. */
export function searchNetwork(db: TelecomUserDb): void {
  const device = deviceOf(db);
  const surroundings = surroundingsOf(db);
  if (simStatusOf(device) === SimStatus.ACTIVE) connect(device, surroundings);
  else loseService(device);
  if (device.airplane_mode) loseService(device);
  if (apnOf(device, "apn_name").apn_name === ApnName.BROKEN) loseService(device);
  if (!surroundings.line_active) loseService(device);
}

function connect(device: PhoneDevice, surroundings: UserSurroundings): void {
  const technology = technologyFor(device.network_mode_preference, surroundings);
  device.network_connection_status = NetworkStatus.CONNECTED;
  device.network_technology_connected = technology;
  device.network_signal_strength = signalOf(surroundings, technology);
}

/** An invalid preference counts as 4G. */
function technologyFor(preference: PyEnum, surroundings: UserSurroundings): PyEnum {
  switch (preference) {
    case NetworkModePreference.FOUR_G_5G_PREFERRED: {
      const has5g = signalOf(surroundings, NetworkTechnology.FIVE_G) !== SignalStrength.NONE;
      return has5g ? NetworkTechnology.FIVE_G : NetworkTechnology.FOUR_G;
    }
    case NetworkModePreference.THREE_G_ONLY:
      return NetworkTechnology.THREE_G;
    case NetworkModePreference.TWO_G_ONLY:
      return NetworkTechnology.TWO_G;
    default:
      return NetworkTechnology.FOUR_G;
  }
}

function signalOf({ signal_strength }: UserSurroundings, technology: PyEnum): PyEnum {
  return lookup(signal_strength, technology) ?? SignalStrength.NONE;
}

function loseService(device: PhoneDevice): void {
  device.network_connection_status = NetworkStatus.NO_SERVICE;
  device.network_technology_connected = NetworkTechnology.NONE;
  device.network_signal_strength = SignalStrength.NONE;
}

export function doesDataWork(db: TelecomUserDb): boolean {
  const device = deviceOf(db);
  const surroundings = surroundingsOf(db);
  if (device.airplane_mode || device.network_signal_strength === SignalStrength.NONE) return false;
  if (device.network_connection_status === NetworkStatus.NO_SERVICE) return false;
  if (isTruthy(surroundings.is_abroad) && !(device.roaming_enabled && surroundings.roaming_allowed)) return false;
  return device.data_enabled && !surroundings.mobile_data_usage_exceeded;
}

/** Lowest and highest speed, in Mbps. */
const RANGES = new Map([
  [NetworkTechnology.TWO_G, [0.1, 0.4]],
  [NetworkTechnology.THREE_G, [1, 5]],
  [NetworkTechnology.FOUR_G, [10, 100]],
  [NetworkTechnology.FIVE_G, [50, 500]],
]);

const WEIGHTS = new Map([
  [SignalStrength.POOR, 0.2],
  [SignalStrength.FAIR, 0.5],
  [SignalStrength.GOOD, 0.8],
  [SignalStrength.EXCELLENT, 1],
]);

export interface Speed {
  /** Null if there is no connection. */
  readonly mbps: number | null;
  readonly words: string;
}

export function speedOf(db: TelecomUserDb): Speed {
  if (!doesDataWork(db)) return { mbps: null, words: "No Connection" };
  const device = deviceOf(db);
  const [slowest = 0, fastest = 0] = RANGES.get(device.network_technology_connected) ?? [];
  const isVpnPoor = device.vpn_connected && device.vpn_details?.server_performance === PerformanceLevel.POOR;
  const factor = (isVpnPoor ? 0.1 : 1) * (device.data_saver_mode ? 0.2 : 1);
  const weight = WEIGHTS.get(device.network_signal_strength) ?? 0;
  const mbps = roundFloat(((slowest + fastest) / 2) * weight * factor, 2);
  return { mbps, words: wordsFor(mbps) };
}

function wordsFor(mbps: number): string {
  if (mbps < 1) return "Very Poor";
  if (mbps < 5) return "Poor";
  if (mbps < 25) return "Fair";
  return mbps < 100 ? "Good" : "Excellent";
}

/** MMS needs mobile data, a network faster than 2G, an MMSC URL, no MMS over Wi-Fi, and the permissions of the messaging app. */
export function canSendMms(db: TelecomUserDb): boolean {
  if (!doesDataWork(db)) return false;
  const device = deviceOf(db);
  if (device.network_technology_connected === NetworkTechnology.TWO_G) return false;
  if (device.wifi_calling_enabled && isTruthy(device.wifi_calling_mms_over_wifi)) return false;
  if (apnOf(device, "mmsc_url").mmsc_url === null) return false;
  const { storage = false, sms = false } = device.app_statuses.get("messaging")?.permissions ?? {};
  return storage && sms;
}
