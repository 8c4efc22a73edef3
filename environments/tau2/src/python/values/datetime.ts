const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

export class PyDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  constructor(year: number, month: number, day: number) {
    this.year = year;
    this.month = month;
    this.day = day;
  }

  isoformat(): string {
    return `${pad(this.year, 4)}-${pad(this.month)}-${pad(this.day)}`;
  }

  addDays(days: number): PyDate {
    const moved = new Date(Date.UTC(this.year, this.month - 1, this.day + days));
    return new PyDate(moved.getUTCFullYear(), moved.getUTCMonth() + 1, moved.getUTCDate());
  }
}

export class PyDateTime {
  readonly date: PyDate;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly microsecond: number;
  /** True if it was made from a Unix timestamp; then it has a time zone. */
  readonly isUtc: boolean;
  constructor(date: PyDate, hour = 0, minute = 0, second = 0, microsecond = 0, isUtc = false) {
    this.date = date;
    this.hour = hour;
    this.minute = minute;
    this.second = second;
    this.microsecond = microsecond;
    this.isUtc = isUtc;
  }

  /** `str()` separates date and time with a space, `isoformat()` with a T. */
  isoformat(separator = "T"): string {
    const fraction = this.microsecond === 0 ? "" : `.${pad(this.microsecond, 6)}`;
    return `${this.date.isoformat()}${separator}${pad(this.hour)}:${pad(this.minute)}:${pad(this.second)}${fraction}${this.isUtc ? "+00:00" : ""}`;
  }
}

export function daysInMonth(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
