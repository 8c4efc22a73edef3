import { type HostVariables, parseTemplate } from "./template.ts";

const SENSITIVE = /KEY|SECRET|TOKEN(?!S)|PASSWORD|CREDENTIAL|AUTH/i;

export function isSensitive(name: string): boolean {
  return SENSITIVE.test(name);
}

/** An environment as it may be written to a file: secrets as templates, or redacted. */
export function withoutSecrets(env: Readonly<Record<string, string>>, host: HostVariables): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, withoutSecret(name, value, host)]));
}

function withoutSecret(name: string, value: string, host: HostVariables): string {
  if (!isSensitive(name) || parseTemplate(value) !== null) return value;
  return host[name] === value ? `\${${name}}` : redacted(value);
}

export function redacted(value: string): string {
  const letters = [...value];
  return letters.length <= 8 ? "****" : `${letters.slice(0, 4).join("")}****${letters.slice(-3).join("")}`;
}
