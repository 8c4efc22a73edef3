import { toolsOf } from "../../../core/tools/tool.ts";
import { equals, isTruthy } from "../../../python/equality.ts";
import { str } from "../../../python/repr.ts";
import { assign } from "../../../python/values/objects.ts";
import type { PhoneSide } from "./model.ts";
import { deviceOf } from "./network.ts";
import { withStatusBar } from "./status-bar.ts";
import { dropWifi, onOff, toggleWifiCalling } from "./switches.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

export const checkWifiStatus = read({
  name: "check_wifi_status",
  summary: "See whether Wi-Fi is on, and which network it is connected to.",
  parameters: {},
  run(_, { db }) {
    const { wifi_enabled, wifi_connected, wifi_ssid, wifi_signal_strength } = deviceOf(db);
    if (!wifi_enabled) return "Wi-Fi is turned OFF.";
    if (!wifi_connected) return "Wi-Fi is ON but not connected to any network.";
    return `Wi-Fi is ON and connected to '${str(wifi_ssid)}'. Signal strength: ${wifi_signal_strength.value}.`;
  },
});

export const toggleWifi = write({
  name: "toggle_wifi",
  summary: "Switch Wi-Fi on or off.",
  details: "In airplane mode it cannot be switched.",
  parameters: {},
  run(_, { db }) {
    const device = deviceOf(db);
    if (device.airplane_mode) return withStatusBar("Cannot change Wi-Fi settings while Airplane Mode is ON.", db);
    device.wifi_enabled = !device.wifi_enabled;
    if (!device.wifi_enabled) dropWifi(device);
    return withStatusBar(`Wi-Fi is now ${onOff(device.wifi_enabled)}.`, db);
  },
});

export const checkWifiCallingStatus = read({
  name: "check_wifi_calling_status",
  summary: "See whether calls may go over Wi-Fi.",
  parameters: {},
  run: (_, { db }) => `Wi-Fi Calling is currently turned ${onOff(deviceOf(db).wifi_calling_enabled)}.`,
});

export const toggleWifiCallingTool = write({
  name: "toggle_wifi_calling",
  summary: "Switch calling over Wi-Fi on or off.",
  parameters: {},
  run: (_, { db }) => withStatusBar(`Wi-Fi Calling is now ${onOff(toggleWifiCalling(db))}.`, db),
});

export const wifiHelpers = [
  helper({
    name: "set_wifi_calling",
    parameters: ["enabled"],
    optionals: { mms_over_wifi: null },
    run({ enabled, mms_over_wifi }, { db }) {
      const device = deviceOf(db);
      if (!equals(device.wifi_calling_enabled, enabled)) toggleWifiCalling(db);
      const message = `Wi-Fi Calling is now ${onOff(device.wifi_calling_enabled)}.`;
      if (mms_over_wifi === null) return message;
      assign(device, "wifi_calling_mms_over_wifi", mms_over_wifi);
      return `${message}\nMMS over Wi-Fi is now ${onOff(isTruthy(mms_over_wifi))}.`;
    },
  }),
];
