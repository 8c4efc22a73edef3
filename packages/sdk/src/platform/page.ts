/** A page of a list that is requested page by page. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
}

/** What a page is requested with. */
export interface PageRequest {
  readonly limit?: number;
  readonly after?: string;
}

/** The items of all pages. */
export async function* eachItem<T>(page: (request: PageRequest) => Promise<Page<T>>): AsyncGenerator<T> {
  let after: string | null | undefined;
  do {
    const { items, next } = await page({ limit: 1_000, ...(after && { after }) });
    yield* items;
    after = next;
  } while (after !== null);
}
