import { NetworkStatus, type PhoneDevice, SignalStrength, type TelecomUserDb } from "./model.ts";
import { deviceOf, searchNetwork } from "./network.ts";

/** Toggles a setting of the phone and returns its new value. */
export type Toggle = (db: TelecomUserDb) => boolean;

export const onOff = (isOn: boolean): "ON" | "OFF" => (isOn ? "ON" : "OFF");

export const toggleAirplaneMode: Toggle = (db) => {
  const device = deviceOf(db);
  device.airplane_mode = !device.airplane_mode;
  if (device.airplane_mode) {
    dropWifi(device);
    if (device.vpn_connected) dropVpn(device);
  } else {
    device.network_connection_status = NetworkStatus.SEARCHING;
    if (device.wifi_enabled) dropWifi(device);
  }
  searchNetwork(db);
  return device.airplane_mode;
};

export const toggleData: Toggle = (db) => {
  const device = deviceOf(db);
  device.data_enabled = !device.data_enabled;
  searchNetwork(db);
  return device.data_enabled;
};

export const toggleRoaming: Toggle = (db) => {
  const device = deviceOf(db);
  device.roaming_enabled = !device.roaming_enabled;
  searchNetwork(db);
  return device.roaming_enabled;
};

export const toggleDataSaver: Toggle = (db) => {
  const device = deviceOf(db);
  device.data_saver_mode = !device.data_saver_mode;
  return device.data_saver_mode;
};

export const toggleWifiCalling: Toggle = (db) => {
  const device = deviceOf(db);
  device.wifi_calling_enabled = !device.wifi_calling_enabled;
  return device.wifi_calling_enabled;
};

/** As in the reference, toggles once, and again if the value is wrong: the side effects happen even if the setting was right before. */
export function turn(toggle: Toggle, wanted: boolean, db: TelecomUserDb): void {
  if (toggle(db) !== wanted) toggle(db);
}

export function dropWifi(device: PhoneDevice): void {
  device.wifi_connected = false;
  device.wifi_ssid = null;
  device.wifi_signal_strength = SignalStrength.NONE;
}

export function dropVpn(device: PhoneDevice): void {
  device.vpn_connected = false;
  device.vpn_details = null;
}
