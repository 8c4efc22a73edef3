import { isTruthy } from "../../../python/equality.ts";
import { str } from "../../../python/repr.ts";
import { NetworkTechnology, type PhoneDevice, SignalStrength, type TelecomUserDb } from "./model.ts";
import { deviceOf } from "./network.ts";

const NO_SIGNAL = "📵 No Signal";

const SIGNALS = new Map([
  [SignalStrength.POOR, "📶¹ Poor"],
  [SignalStrength.FAIR, "📶² Fair"],
  [SignalStrength.GOOD, "📶³ Good"],
  [SignalStrength.EXCELLENT, "📶⁴ Excellent"],
]);

/** The status bar of the phone. */
export function statusBar(db: TelecomUserDb): string {
  const device = deviceOf(db);
  const indicators = device.airplane_mode ? ["✈️ Airplane Mode"] : cellularIndicators(device);
  if (device.wifi_enabled && device.wifi_connected) {
    indicators.push(isTruthy(device.wifi_ssid) ? `📡 Connected to ${str(device.wifi_ssid)}` : "📡 Enabled");
  }
  if (device.vpn_connected) indicators.push("🔒 VPN Connected");
  indicators.push(`🔋 ${str(device.battery_level)}%`);
  return `Status Bar: ${indicators.join(" | ")}`;
}

function cellularIndicators(device: PhoneDevice): string[] {
  const technology = device.network_technology_connected;
  const indicators = [SIGNALS.get(device.network_signal_strength) ?? NO_SIGNAL];
  if (technology === NetworkTechnology.NONE) return [...indicators, "📵 Data Disabled"];
  indicators.push(technology.value);
  if (!device.data_enabled) indicators.push("📵 Data Disabled");
  else indicators.push("📱 Data Enabled", ...(device.data_saver_mode ? ["🔽 Data Saver"] : []));
  return indicators;
}

/** The answer of most tools: a message and the current status bar. */
export function withStatusBar(message: string, db: TelecomUserDb): string {
  return `${message}\n${statusBar(db)}`;
}
