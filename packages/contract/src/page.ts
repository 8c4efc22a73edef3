import * as z from "zod";

/** One page of a list. `next` is the cursor of the page after it; null or absent at the end. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullish() });
}
