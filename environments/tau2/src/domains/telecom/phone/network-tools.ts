import { attributeError } from "@aenv/benchmark";
import { parameter } from "../../../core/tools/parameters.ts";
import { toolsOf } from "../../../core/tools/tool.ts";
import { formatFixed } from "../../../python/numbers.ts";
import { str } from "../../../python/repr.ts";
import { PyEnum } from "../../../python/values/enums.ts";
import { assign } from "../../../python/values/objects.ts";
import { typeName } from "../../../python/values/types.ts";
import { float, type PyValue } from "../../../python/values/values.ts";
import { NetworkModePreference, type PhoneSide } from "./model.ts";
import { deviceOf, searchNetwork, simStatusOf, speedOf, surroundingsOf } from "./network.ts";
import { statusBar, withStatusBar } from "./status-bar.ts";
import { onOff, toggleAirplaneMode, toggleData, toggleDataSaver, toggleRoaming, turn } from "./switches.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

const MODES: readonly PyEnum[] = Object.values(NetworkModePreference);
const modeNames = MODES.map(({ value }) => value);

export const checkStatusBar = read({
  name: "check_status_bar",
  summary: "Look at the status bar at the top of your phone's screen.",
  parameters: {},
  run: (_, { db }) => statusBar(db),
});

export const checkNetworkStatus = read({
  name: "check_network_status",
  summary: "See how your phone is connected.",
  details: "Shows airplane mode, SIM card, cellular signal and network, mobile data, roaming and Wi-Fi.",
  parameters: {},
  run(_, { db }) {
    const device = deviceOf(db);
    const yesNo = (isSo: boolean): string => (isSo ? "Yes" : "No");
    return [
      `Airplane Mode: ${onOff(device.airplane_mode)}`,
      `SIM Card Status: ${simStatusOf(device).value}`,
      `Cellular Connection: ${device.network_connection_status.value}`,
      `Cellular Signal: ${device.network_signal_strength.value}`,
      `Cellular Network Type: ${device.network_technology_connected.value}`,
      `Mobile Data Enabled: ${yesNo(device.data_enabled)}`,
      `Data Roaming Enabled: ${yesNo(device.roaming_enabled)}`,
      `Wi-Fi Radio: ${onOff(device.wifi_enabled)}`,
      `Wi-Fi Connected: ${yesNo(device.wifi_connected)}`,
      ...(device.wifi_connected ? [`Connected Wi-Fi Network: ${str(device.wifi_ssid)}`] : []),
    ].join("\n");
  },
});

export const checkNetworkModePreference = read({
  name: "check_network_mode_preference",
  summary: "See which kind of mobile network your phone prefers.",
  parameters: {},
  run: (_, { db }) => `Network Mode Preference: ${printedMode(deviceOf(db).network_mode_preference)}`,
});

export const setNetworkModePreference = write({
  name: "set_network_mode_preference",
  summary: "Choose which kind of mobile network your phone prefers.",
  parameters: {
    mode: parameter({ anyOf: [{ $ref: "#/$defs/NetworkModePreference" }, { type: "string" }] }, `One of ${modeNames.join(", ")}.`),
  },
  definitions: { NetworkModePreference: { enum: modeNames, title: "NetworkModePreference", type: "string" } },
  run({ mode }, { db }) {
    const chosen = typeof mode === "string" ? MODES.find(({ value }) => value === mode) : mode;
    // As in the reference, a value that is not a string is stored before the error is raised.
    if (chosen !== undefined) {
      assign(deviceOf(db), "network_mode_preference", chosen);
      searchNetwork(db);
    }
    if (chosen !== undefined && chosen !== null) return withStatusBar(`Preferred Network Mode set to: ${printedMode(chosen)}`, db);
    const failure = `Failed to set network mode: '${str(mode)}' is not a valid option. Please use one of: ${modeNames.join(", ")}`;
    return withStatusBar(failure, db);
  },
});

export const runSpeedTest = read({
  name: "run_speed_test",
  summary: "Measure how fast your mobile internet is.",
  parameters: {},
  run(_, { db }) {
    const { mbps, words } = speedOf(db);
    if (mbps === null) return `Speed test failed: ${words}.`;
    return `Speed Test Result: ${formatFixed(float(mbps))} Mbps (${words}). ${ADVICE[words] ?? ""}`;
  },
});

const ADVICE: Readonly<Record<string, string>> = {
  "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
  Poor: "Connection is slow. Web browsing may be sluggish, streaming difficult.",
  Fair: "Connection is okay for web browsing and some standard definition streaming.",
  Good: "Connection is good for most activities, including HD streaming.",
  Excellent: "Connection is very fast.",
};

export const toggleAirplaneModeTool = write({
  name: "toggle_airplane_mode",
  summary: "Switch airplane mode on or off.",
  details: "While it is on, nothing is sent or received.",
  parameters: {},
  run: (_, { db }) => withStatusBar(`Airplane Mode is now ${onOff(toggleAirplaneMode(db))}.`, db),
});

export const toggleDataTool = write({
  name: "toggle_data",
  summary: "Switch mobile data on or off.",
  parameters: {},
  run: (_, { db }) => withStatusBar(`Mobile Data is now ${onOff(toggleData(db))}.`, db),
});

export const toggleRoamingTool = write({
  name: "toggle_roaming",
  summary: "Switch data roaming on or off: whether mobile data may be used abroad.",
  parameters: {},
  run: (_, { db }) => withStatusBar(`Data Roaming is now ${onOff(toggleRoaming(db))}.`, db),
});

export const checkDataRestrictionStatus = read({
  name: "check_data_restriction_status",
  summary: "See whether your phone saves data.",
  parameters: {},
  run: (_, { db }) => (deviceOf(db).data_saver_mode ? "Data Saver mode is ON (limits data usage)." : "Data Saver mode is OFF."),
});

export const toggleDataSaverMode = write({
  name: "toggle_data_saver_mode",
  summary: "Switch data saver mode on or off; it makes the internet slower.",
  parameters: {},
  run: (_, { db }) => withStatusBar(`Data Saver Mode is now ${onOff(toggleDataSaver(db))}.`, db),
});

export const networkHelpers = [
  helper({
    name: "set_user_info",
    parameters: ["name", "phone_number"],
    run({ name, phone_number }, { db }) {
      assign(surroundingsOf(db), "name", name);
      assign(surroundingsOf(db), "phone_number", phone_number);
      return null;
    },
  }),
  helper({
    name: "set_user_location",
    parameters: ["abroad"],
    run({ abroad }, { db }) {
      assign(surroundingsOf(db), "is_abroad", abroad);
      return null;
    },
  }),
  helper({
    name: "simulate_network_search",
    parameters: [],
    run(_, { db }) {
      searchNetwork(db);
      return null;
    },
  }),
  ...[true, false].flatMap((isOn) => {
    const word = onOff(isOn);
    const suffix = word.toLowerCase();
    return [
      turning(`turn_airplane_mode_${suffix}`, (db) => turn(toggleAirplaneMode, isOn, db), `Airplane Mode is now ${word}.`),
      turning(`turn_roaming_${suffix}`, (db) => turn(toggleRoaming, isOn, db), `Data Roaming is now ${word}.`),
      turning(`turn_data_saver_mode_${suffix}`, (db) => turn(toggleDataSaver, isOn, db), `Data Saver Mode is now ${word}.`),
    ];
  }),
  turning("turn_data_off", (db) => turn(toggleData, false, db), "Data connection broken."),
  // Unlike turn_data_off, it does not search for a network.
  turning("turn_data_on", (db) => assign(deviceOf(db), "data_enabled", true), "Data connection restored."),
];

function turning(name: string, act: (db: PhoneSide["db"]) => void, answer: string) {
  return helper({
    name,
    parameters: [],
    run(_, { db }) {
      act(db);
      return answer;
    },
  });
}

function printedMode(preference: PyValue): string {
  if (!(preference instanceof PyEnum)) throw attributeError(typeName(preference), "value");
  return preference.value;
}
