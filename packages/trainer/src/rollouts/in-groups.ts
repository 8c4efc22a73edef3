import { Breaks } from "./breaks.ts";

/** Rows that are read or written at the same time. */
const AT_ONCE = 64;

/** Works on all items, a group at a time, so that a large request does not occupy the store or the process alone. */
export async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<void>, atOnce = AT_ONCE): Promise<void> {
  const breaks = new Breaks();
  for (let at = 0; at < items.length; at += atOnce) {
    await Promise.all(items.slice(at, at + atOnce).map(work));
    await breaks.take();
  }
}
