import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import type { Dict } from "../../python/values/values.ts";
import { apnHelpers, checkApnSettings, rebootDevice, resetApnSettings, setApnSettings } from "./phone/apn-tools.ts";
import {
  appHelpers,
  canSendMmsTool,
  checkAppPermissions,
  checkAppStatus,
  checkInstalledApps,
  grantAppPermission,
} from "./phone/app-tools.ts";
import { assertions } from "./phone/assertions.ts";
import type { TelecomUserDb, VpnDetails } from "./phone/model.ts";
import {
  checkDataRestrictionStatus,
  checkNetworkModePreference,
  checkNetworkStatus,
  checkStatusBar,
  networkHelpers,
  runSpeedTest,
  setNetworkModePreference,
  toggleAirplaneModeTool,
  toggleDataSaverMode,
  toggleDataTool,
  toggleRoamingTool,
} from "./phone/network-tools.ts";
import { checkPaymentRequest, makePayment } from "./phone/payment-tools.ts";
import { checkSimStatus, reseatSimCard, simHelpers } from "./phone/sim-tools.ts";
import { checkVpnStatus, connectVpn, disconnectVpn, freshMemory, vpnHelpers } from "./phone/vpn-tools.ts";
import { checkWifiCallingStatus, checkWifiStatus, toggleWifi, toggleWifiCallingTool, wifiHelpers } from "./phone/wifi-tools.ts";

export const telecomUserTools: ToolkitDefinition<TelecomUserDb, Dict<VpnDetails>> = {
  className: "TelecomUserTools",
  tools: [
    checkStatusBar,
    checkNetworkStatus,
    checkNetworkModePreference,
    setNetworkModePreference,
    runSpeedTest,
    toggleAirplaneModeTool,
    checkSimStatus,
    reseatSimCard,
    toggleDataTool,
    toggleRoamingTool,
    checkDataRestrictionStatus,
    toggleDataSaverMode,
    checkApnSettings,
    setApnSettings,
    resetApnSettings,
    checkWifiStatus,
    toggleWifi,
    checkWifiCallingStatus,
    toggleWifiCallingTool,
    checkVpnStatus,
    connectVpn,
    disconnectVpn,
    checkInstalledApps,
    checkAppStatus,
    checkAppPermissions,
    grantAppPermission,
    canSendMmsTool,
    rebootDevice,
    checkPaymentRequest,
    makePayment,
  ],
  helpers: [...networkHelpers, ...simHelpers, ...apnHelpers, ...wifiHelpers, ...vpnHelpers, ...appHelpers, ...assertions],
  memory: freshMemory,
};
