import { type JsonSchema, parameter } from "../../../core/tools/parameters.ts";
import { toolsOf } from "../../../core/tools/tool.ts";
import { assign } from "../../../python/values/objects.ts";
import { Dict } from "../../../python/values/values.ts";
import { ApnName, ApnSettings, NetworkStatus, type PhoneSide } from "./model.ts";
import { apnOf, deviceOf, searchNetwork } from "./network.ts";
import { withStatusBar } from "./status-bar.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

const textOrNull = { anyOf: [{ type: "string" }, { type: "null" }] };

const definitions: JsonSchema = {
  APNNames: { enum: ["internet", "broken"], title: "APNNames", type: "string" },
  APNSettings: {
    additionalProperties: false,
    description: "How the phone reaches the carrier's data network.",
    properties: {
      apn_name: { $ref: "#/$defs/APNNames", default: "internet", description: "Which access point is used." },
      reset_at_reboot: {
        default: false,
        description: "Whether the next reboot brings the defaults back.",
        title: "Reset At Reboot",
        type: "boolean",
      },
      mms_apn: { ...textOrNull, default: "mms", description: "The access point for picture messages.", title: "Mms Apn" },
      mmsc_url: {
        ...textOrNull,
        default: "http://mms.carrier.com/mms/wapenc",
        description: "Where picture messages are sent; without it none can be.",
        title: "Mmsc Url",
      },
      mms_proxy: { ...textOrNull, default: null, description: "A proxy for picture messages, where one is needed.", title: "Mms Proxy" },
      mms_port: {
        anyOf: [{ type: "integer" }, { type: "null" }],
        default: null,
        description: "The port of that proxy.",
        title: "Mms Port",
      },
    },
    title: "APNSettings",
    type: "object",
  },
};

export const checkApnSettings = read({
  name: "check_apn_settings",
  summary: "See the name of your phone's access point, and where it sends picture messages.",
  parameters: {},
  run(_, { db }) {
    const { apn_name, mmsc_url } = apnOf(deviceOf(db), "model_copy");
    return [
      `Current APN Name: ${apn_name.value}`,
      `MMSC URL (for picture messages): ${mmsc_url || "Not Set"}`,
      "(These are technical settings, usually best left unchanged.)",
    ].join("\n");
  },
});

export const setApnSettings = write({
  name: "set_apn_settings",
  summary: "Replace your phone's access point settings.",
  parameters: {
    apn_settings: parameter(
      { anyOf: [{ $ref: "#/$defs/APNSettings" }, { additionalProperties: true, type: "object" }] },
      "All settings; those that are left out get their defaults.",
    ),
  },
  definitions,
  run({ apn_settings }, { db }) {
    const device = deviceOf(db);
    // As in the reference, a value that is not a dict is stored, and the next read raises an error.
    assign(device, "active_apn_settings", apn_settings instanceof Dict ? ApnSettings.create(apn_settings) : apn_settings);
    const { apn_name } = apnOf(device, "apn_name");
    searchNetwork(db);
    return withStatusBar(`APN settings set to: ${apn_name.value}`, db);
  },
});

export const resetApnSettings = write({
  name: "reset_apn_settings",
  summary: "Bring the default access point settings back.",
  details: "It takes effect when the phone is rebooted.",
  parameters: {},
  run(_, { db }) {
    apnOf(deviceOf(db), "reset_at_reboot").reset_at_reboot = true;
    searchNetwork(db);
    return withStatusBar("APN settings will reset at reboot.", db);
  },
});

export const rebootDevice = write({
  name: "reboot_device",
  summary: "Restart your phone.",
  details: "Settings that wait for a restart take effect.",
  parameters: {},
  run(_, { db }) {
    const device = deviceOf(db);
    const isReset = apnOf(device, "reset_at_reboot").reset_at_reboot;
    if (isReset) device.active_apn_settings = ApnSettings.create({});
    device.network_connection_status = NetworkStatus.SEARCHING;
    searchNetwork(db);
    return withStatusBar(`${isReset ? "Resetting APN settings...\n" : ""}Restarting network services...`, db);
  },
});

export const apnHelpers = [
  helper({
    name: "break_apn_settings",
    parameters: [],
    run(_, { db }) {
      apnOf(deviceOf(db), "apn_name").apn_name = ApnName.BROKEN;
      searchNetwork(db);
      return "APN settings broken. Please call reset_apn_settings() to fix.";
    },
  }),
  helper({
    name: "break_apn_mms_setting",
    parameters: [],
    run(_, { db }) {
      apnOf(deviceOf(db), "mmsc_url").mmsc_url = null;
      return "APN MMS setting broken. Please call reset_apn_settings() to fix.";
    },
  }),
];
