import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

/**
 * The variables of a reader's shell, with a home and an npm of their own. npm shares its downloads with the machine's; they are found by
 * their hash, so that neither can hold anything wrong.
 */
export function readersEnv(home: string, plain: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = npmConfig("cache");
  const cache = join(home, ".npm/_cacache");
  mkdirSync(cache, { recursive: true });
  mkdirSync(join(kept, "_cacache/content-v2"), { recursive: true });
  symlinkSync(join(kept, "_cacache/content-v2"), join(cache, "content-v2"));
  const userConfig = join(homedir(), ".npmrc");
  return {
    ...Object.fromEntries(Object.entries(plain).filter(([name]) => !/^(AENV_|DUMMY_|HUB_)/.test(name))),
    // How this machine trusts its registry belongs to the machine and not to the reader.
    ...(process.env.NODE_EXTRA_CA_CERTS !== undefined && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
    HOME: home,
    npm_config_cache: join(home, ".npm"),
    ...(existsSync(userConfig) && { npm_config_userconfig: userConfig }),
    // What a reader answers when npx asks.
    npm_config_yes: "true",
    // Asked once for what other packages there are, and not again by each text.
    npm_config_prefer_offline: "true",
    npm_config_update_notifier: "false",
    npm_config_fund: "false",
    npm_config_audit: "false",
  };
}

/** The Node that the docs ask for comes first, as one that the machine has. */
export function withNeededNode(home: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, "node"));
  return { ...env, PATH: `${bin}${delimiter}${env.PATH}` };
}

export function npmConfig(key: string): string {
  return execFileSync("npm", ["config", "get", key], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
