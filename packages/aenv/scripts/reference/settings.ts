import { type ServerSetting, serverSettings } from "../../src/server/settings.ts";
import { type Page, page, table } from "./page.ts";

/** `settings.md`: everything that can be set on the server. */
export function settingsPage(settings: readonly ServerSetting[] = serverSettings()): Page {
  const rows = settings.map(({ key, flag, variable, defaultText, does }) => [
    `\`${key}\``,
    `\`${flag}\``,
    `\`${variable}\``,
    defaultText === "" ? "" : `\`${defaultText}\``,
    does,
  ]);
  return page(
    "settings.md",
    "Server settings",
    "Settings of `aenv server`. A flag overrides its environment variable, and the variable overrides the config file (`--config`), which has the settings by name.",
    table(["Setting", "Flag", "Variable", "Default", "Meaning"], rows),
  );
}
