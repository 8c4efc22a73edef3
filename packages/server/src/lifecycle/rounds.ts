/** Periodic work; rounds never overlap. */
export interface Rounds {
  stop(): Promise<unknown>;
}

export function startRounds(work: () => Promise<unknown>, everyMs: number, onFailure: (error: unknown) => void): Rounds {
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<unknown> = Promise.resolve();
  const next = () => {
    timer = setTimeout(() => {
      running = work()
        .catch(onFailure)
        .finally(() => {
          if (!isStopped) next();
        });
    }, everyMs).unref();
  };
  next();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}
