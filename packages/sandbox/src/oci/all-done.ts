/** Like `Promise.all`, but nothing goes on when it rejects: what is cleaned up afterwards is not created again. */
export async function allDone<T extends readonly unknown[]>(promises: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const failed = (await Promise.allSettled(promises)).find((one) => one.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return Promise.all(promises) as Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }>;
}
