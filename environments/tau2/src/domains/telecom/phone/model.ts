import type { Side } from "../../../core/tools/tool.ts";
import { bool, dict, int, member, nullable, number, text, withDefault } from "../../../python/model/field-types.ts";
import { type Instance, model } from "../../../python/model/model.ts";
import { enumeration, type PyEnum } from "../../../python/values/enums.ts";
import { Dict } from "../../../python/values/values.ts";

const options = { module: "tau2.domains.telecom.user_data_model", extra: "forbid" } as const;

export const SimStatus = enumeration("SimStatus", {
  ACTIVE: "active",
  MISSING: "missing",
  LOCKED_PIN: "locked_pin",
  LOCKED_PUK: "locked_puk",
});

export const NetworkTechnology = enumeration("NetworkTechnology", {
  NONE: "none",
  TWO_G: "2G",
  THREE_G: "3G",
  FOUR_G: "4G",
  FIVE_G: "5G",
});

export const NetworkModePreference = enumeration("NetworkModePreference", {
  FOUR_G_5G_PREFERRED: "4g_5g_preferred",
  FOUR_G_ONLY: "4g_only",
  THREE_G_ONLY: "3g_only",
  TWO_G_ONLY: "2g_only",
});

export const SignalStrength = enumeration("SignalStrength", {
  NONE: "none",
  POOR: "poor",
  FAIR: "fair",
  GOOD: "good",
  EXCELLENT: "excellent",
});

export const PerformanceLevel = enumeration("PerformanceLevel", {
  UNKNOWN: "unknown",
  POOR: "poor",
  FAIR: "fair",
  GOOD: "good",
  EXCELLENT: "excellent",
});

export const NetworkStatus = enumeration("NetworkStatus", {
  CONNECTED: "connected",
  SEARCHING: "searching",
  NO_SERVICE: "no_service",
  EMERGENCY_ONLY: "emergency_only",
});

export const ApnName = enumeration("APNNames", { INTERNET: "internet", BROKEN: "broken" });

export const ApnSettings = model(
  "APNSettings",
  {
    apn_name: withDefault(member(ApnName), ApnName.INTERNET),
    reset_at_reboot: withDefault(bool, false),
    mms_apn: withDefault(nullable(text), "mms"),
    mmsc_url: withDefault(nullable(text), "http://mms.carrier.com/mms/wapenc"),
    mms_proxy: withDefault(nullable(text), null),
    mms_port: withDefault(nullable(int), null),
  },
  options,
);

export const VpnDetails = model(
  "VpnDetails",
  {
    server_address: withDefault(nullable(text), null),
    protocol: withDefault(nullable(text), null),
    server_performance: withDefault(member(PerformanceLevel), PerformanceLevel.UNKNOWN),
  },
  options,
);

/** Permissions in the order in which they are listed. */
export const PERMISSIONS = ["sms", "storage", "phone", "network"] as const;

const permission = withDefault(bool, false);

const AppPermissions = model("AppPermissions", { sms: permission, storage: permission, phone: permission, network: permission }, options);

const AppStatus = model(
  "AppStatus",
  { app_name: text, permissions: withDefault(AppPermissions, () => AppPermissions.create({})) },
  options,
);

const stockApps = (): Dict =>
  Dict.of({
    messaging: appWith("messaging", { sms: true, storage: true, phone: true }),
    browser: appWith("browser", { storage: true, network: true }),
  });

const appWith = (app_name: string, granted: Readonly<Record<string, boolean>>): AppStatus =>
  AppStatus.create({ app_name, permissions: AppPermissions.create(granted) });

export const PhoneDevice = model(
  "MockPhoneAttributes",
  {
    sim_card_status: withDefault(member(SimStatus), SimStatus.ACTIVE),
    sim_card_missing: withDefault(bool, false),
    airplane_mode: withDefault(bool, false),
    network_signal_strength: withDefault(member(SignalStrength), SignalStrength.GOOD),
    network_technology_connected: withDefault(member(NetworkTechnology), NetworkTechnology.FIVE_G),
    network_connection_status: withDefault(member(NetworkStatus), NetworkStatus.CONNECTED),
    battery_level: withDefault(int, 80),
    data_enabled: withDefault(bool, true),
    roaming_enabled: withDefault(bool, false),
    network_mode_preference: withDefault(member(NetworkModePreference), NetworkModePreference.FOUR_G_5G_PREFERRED),
    active_apn_settings: withDefault(ApnSettings, () => ApnSettings.create({})),
    wifi_enabled: withDefault(bool, false),
    wifi_connected: withDefault(bool, false),
    wifi_ssid: withDefault(nullable(text), null),
    wifi_signal_strength: withDefault(member(SignalStrength), SignalStrength.NONE),
    wifi_calling_enabled: withDefault(bool, false),
    wifi_calling_mms_over_wifi: withDefault(bool, false),
    data_saver_mode: withDefault(bool, false),
    vpn_enabled_setting: withDefault(bool, false),
    vpn_connected: withDefault(bool, false),
    vpn_details: withDefault(nullable(VpnDetails), null),
    app_statuses: withDefault(dict(AppStatus), stockApps),
  },
  options,
);

export const PaymentRequest = model("PaymentRequest", { bill_id: text, amount_due: number, paid: withDefault(bool, false) }, options);

const stockSignals = (): Dict<PyEnum> =>
  new Dict([
    [NetworkTechnology.TWO_G, SignalStrength.POOR],
    [NetworkTechnology.THREE_G, SignalStrength.FAIR],
    [NetworkTechnology.FOUR_G, SignalStrength.GOOD],
    [NetworkTechnology.FIVE_G, SignalStrength.EXCELLENT],
  ]);

const UserSurroundings = model(
  "UserSurroundings",
  {
    name: withDefault(nullable(text), null),
    phone_number: withDefault(nullable(text), null),
    is_abroad: withDefault(bool, false),
    roaming_allowed: withDefault(bool, false),
    signal_strength: withDefault(dict(member(SignalStrength), member(NetworkTechnology)), stockSignals),
    mobile_data_usage_exceeded: withDefault(bool, false),
    line_active: withDefault(bool, true),
    payment_request: withDefault(nullable(PaymentRequest), null),
  },
  options,
);

export const TelecomUserDb = model(
  "TelecomUserDB",
  {
    device: withDefault(PhoneDevice, () => PhoneDevice.create({})),
    surroundings: withDefault(UserSurroundings, () => UserSurroundings.create({})),
  },
  options,
);

export type ApnSettings = Instance<typeof ApnSettings>;
export type VpnDetails = Instance<typeof VpnDetails>;
export type AppStatus = Instance<typeof AppStatus>;
export type PhoneDevice = Instance<typeof PhoneDevice>;
export type UserSurroundings = Instance<typeof UserSurroundings>;
export type TelecomUserDb = Instance<typeof TelecomUserDb>;

/** The user's side keeps the VPN profile that the phone connects with. */
export type PhoneSide = Side<TelecomUserDb, Dict<VpnDetails>>;
