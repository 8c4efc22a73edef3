/**
 * The chance that at least one of k samples passes, estimated without bias from c passes in n samples:
 * 1 - C(n-c, k) / C(n, k).
 */
export function passAtK(samples: number, passes: number, k: number): number {
  checkCounts(samples, passes, k);
  if (samples - passes < k) return 1;
  return 1 - ratioOfChoices(samples - passes, samples, k);
}

/** The chance that all of k samples pass, estimated without bias from c passes in n samples: C(c, k) / C(n, k). */
export function passHatK(samples: number, passes: number, k: number): number {
  checkCounts(samples, passes, k);
  return passes < k ? 0 : ratioOfChoices(passes, samples, k);
}

/** C(part, k) / C(whole, k), as a product that neither overflows nor loses precision. */
function ratioOfChoices(part: number, whole: number, k: number): number {
  let ratio = 1;
  for (let i = 0; i < k; i++) ratio *= (part - i) / (whole - i);
  return ratio;
}

function checkCounts(samples: number, passes: number, k: number): void {
  const isValid =
    [samples, passes, k].every((value) => Number.isInteger(value) && value >= 0) && passes <= samples && k >= 1 && k <= samples;
  if (!isValid)
    throw new RangeError(
      `pass estimates need 0 <= passes <= samples and 1 <= k <= samples, not passes ${passes}, samples ${samples}, k ${k}`,
    );
}
