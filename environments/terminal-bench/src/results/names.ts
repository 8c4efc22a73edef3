const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** The name of a trial's folder: the task's short name, and seven random characters. */
export function trialName(shortName: string, random: () => number = Math.random): string {
  const start = [...shortName]
    .slice(0, 32)
    .join("")
    .replace(/[_-]+$/, "");
  const letters = Array.from({ length: 7 }, () => ALPHABET[Math.floor(random() * ALPHABET.length)] ?? "2");
  return `${start}__${letters.join("")}`;
}

/** The name of a job's folder: its local time. */
export function jobName(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}__${two(date.getHours())}-${two(date.getMinutes())}-${two(date.getSeconds())}`;
}

/** The name of a separate verifier's environment. */
export function verifierSessionId(trial: string, step: string | null, sha1: (text: string) => string): string {
  const name = `${trial}__verifier__${step ?? "trial"}`.replace(/[^A-Za-z0-9._-]/g, "-");
  return name.length <= 63 ? name : `${name.slice(0, 53)}__${sha1(name).slice(0, 8)}`;
}

/** The evaluation that a trial belongs to: agent, model without its provider, and dataset. */
export function evalKey(agent: string, model: string | null, dataset: string | null): string {
  const name = model === null ? null : model.slice(model.indexOf("/") + 1);
  return [agent, ...(name === null ? [] : [name]), dataset ?? "adhoc"].join("__");
}
