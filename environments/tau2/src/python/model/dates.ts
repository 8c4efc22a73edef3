import { daysInMonth, PyDate, PyDateTime } from "../values/datetime.ts";
import { isInt, PyFloat, type PyValue } from "../values/values.ts";

/** Why a date was refused: the type and the message of the validation error. */
export interface Refusal {
  readonly type: string;
  readonly message: string;
}

/** A date: `YYYY-MM-DD`, or a datetime or Unix timestamp at midnight. */
export function readDate(input: PyValue): PyDate | Refusal {
  const seconds = secondsOf(input);
  if (typeof input !== "string" && seconds === null) return { type: "date_type", message: "Input should be a valid date" };
  const plain = typeof input === "string" && seconds === null ? parseDate(input) : null;
  if (plain instanceof PyDate) return plain;
  const moment = seconds === null ? parseDateTime(String(input)) : momentOf(seconds);
  if (typeof moment === "string") {
    const reason = typeof plain === "string" && typeof parseDate(String(input).slice(0, 10)) === "string" ? plain : moment;
    return { type: "date_from_datetime_parsing", message: `Input should be a valid date or datetime, ${reason}` };
  }
  const isMidnight = moment.hour + moment.minute + moment.second + moment.microsecond === 0;
  if (isMidnight) return moment.date;
  return { type: "date_from_datetime_inexact", message: "Datetimes provided to dates should have zero time - e.g. be exact dates" };
}

/** A datetime; a date without a time means midnight. */
export function readDateTime(input: PyValue): PyDateTime | Refusal {
  const seconds = secondsOf(input);
  if (input instanceof PyDate) return new PyDateTime(input);
  if (seconds !== null) {
    const moment = momentOf(seconds);
    return typeof moment === "string" ? { type: "datetime_parsing", message: `Input should be a valid datetime, ${moment}` } : moment;
  }
  if (typeof input !== "string") return { type: "datetime_type", message: "Input should be a valid datetime" };
  const moment = parseDateTime(input);
  if (typeof moment !== "string") return moment;
  const date = parseDate(input);
  if (date instanceof PyDate) return new PyDateTime(date);
  const reason = input.length > 10 && parseDate(input.slice(0, 10)) instanceof PyDate ? moment : date;
  return { type: "datetime_from_date_parsing", message: `Input should be a valid datetime or date, ${reason}` };
}

function secondsOf(input: PyValue): number | null {
  if (isInt(input)) return Number(input);
  if (input instanceof PyFloat) return input.value;
  return typeof input === "string" && /^[+-]?\d+(\.\d+)?$/.test(input) ? Number(input) : null;
}

/** Larger numbers are milliseconds, as in pydantic. */
const LARGEST_SECONDS = 2e10;

function momentOf(given: number): PyDateTime | string {
  const seconds = Math.abs(given) > LARGEST_SECONDS ? given / 1000 : given;
  const moment = new Date(Math.floor(seconds) * 1000);
  if (Number.isNaN(moment.getTime()) || moment.getUTCFullYear() > 9999) return "dates after 9999 are not supported as unix timestamps";
  if (moment.getUTCFullYear() < 1) return "dates before 0000 are not supported as unix timestamps";
  const date = new PyDate(moment.getUTCFullYear(), moment.getUTCMonth() + 1, moment.getUTCDate());
  const micro = Math.round((seconds - Math.floor(seconds)) * 1e6);
  return new PyDateTime(date, moment.getUTCHours(), moment.getUTCMinutes(), moment.getUTCSeconds(), micro, true);
}

/** A date, or why the text is not one. */
function parseDate(text: string): PyDate | string {
  if (text.length < 10) return "input is too short";
  if (!/^\d{4}/.test(text)) return "invalid character in year";
  if (text[4] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d/.test(text.slice(5))) return "invalid character in month";
  if (text[7] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d/.test(text.slice(8))) return "invalid character in day";
  const [year, month, day] = [Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10))];
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  if (day < 1 || day > daysInMonth(year, month)) return "day value is outside expected range";
  return text.length > 10 ? "unexpected extra characters at the end of the input" : new PyDate(year, month, day);
}

function parseDateTime(text: string): PyDateTime | string {
  const date = parseDate(text.slice(0, 10));
  if (typeof date === "string") return date;
  if (text.length < 16) return "input is too short";
  if (!/^[Tt _]/.test(text.slice(10))) return "invalid datetime separator, expected `T`, `t`, `_` or space";
  const time = /^(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?([Zz]|[+-]00:?00)?$/.exec(text.slice(11));
  if (time === null) return "unexpected extra characters at the end of the input";
  const [hour, minute, second] = [Number(time[1]), Number(time[2]), Number(time[3] ?? 0)];
  if (hour > 23) return "hour value is outside expected range of 0-23";
  if (minute > 59) return "minute value is outside expected range of 0-59";
  if (second > 59) return "second value is outside expected range of 0-59";
  return new PyDateTime(date, hour, minute, second, Number((time[4] ?? "").padEnd(6, "0")), time[5] !== undefined);
}
