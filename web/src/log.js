/* Output of a job as lines with colours.  It becomes text nodes: whatever a job writes, it is never markup. */

const LINES = 5000;
const LONG = 4000; /* characters; longer lines are cut into several */

/** Terminal sequences in, pieces of text with a class out; keeps the colour over lines and parts. */
export class Ansi {
  constructor() { this.style = []; this.rest = ''; }

  /** A sequence may be cut in two between two parts: what is not whole waits. */
  feed(part) {
    let text = this.rest + part;
    const cut = /\x1b(\[[0-9;?]*|\][^\x07\x1b]*)?$/.exec(text);
    this.rest = cut && cut[0].length < 256 ? cut[0] : '';
    text = text.slice(0, text.length - this.rest.length);
    const out = [];
    const pattern = /\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;
    let at = 0;
    for (let m; (m = pattern.exec(text));) {
      if (m.index > at) out.push([text.slice(at, m.index), this.style.join(' ')]);
      at = pattern.lastIndex;
      if (m[2] === 'm') this.sgr(m[1]);
    }
    if (at < text.length) out.push([text.slice(at), this.style.join(' ')]);
    return out;
  }

  sgr(list) {
    const codes = (list || '0').split(';').map(Number);
    for (let i = 0; i < codes.length; i++) {
      const c = codes[i];
      const without = (re) => { this.style = this.style.filter((s) => !re.test(s)); };
      if (c === 0) this.style = [];
      else if (c === 1 || c === 2 || c === 3 || c === 4) { without(new RegExp(`^s${c}$`)); this.style.push(`s${c}`); }
      else if (c === 22) without(/^s[12]$/);
      else if (c === 23) without(/^s3$/);
      else if (c === 24) without(/^s4$/);
      else if (c === 39) without(/^a/);
      else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) { without(/^a/); this.style.push(`a${c % 10}`); }
      else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : 4; /* of 256 or of 16 million: as it is without */
    }
  }
}

/** Writes into `pre`, a <div> a line; the last LINES of them. */
export class Output {
  constructor(pre) { Object.assign(this, { pre, ansi: new Ansi(), line: null, size: 0 }); }

  add(part) {
    const { pre } = this;
    const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 30;
    for (const [text, style] of this.ansi.feed(part)) {
      for (const piece of text.split(/(\r\n|\n|\r)/)) {
        if (piece === '\n' || piece === '\r\n') this.line = (this.line ?? this.begin(), null);
        else if (piece === '\r') this.again = true; /* the next text begins this line anew: progress bars */
        else if (piece) this.put(piece, style);
      }
    }
    while (pre.childElementCount > LINES) pre.firstElementChild.remove();
    if (atEnd) pre.scrollTop = pre.scrollHeight;
  }

  begin() {
    this.line = document.createElement('div');
    this.size = 0;
    this.again = false;
    this.pre.append(this.line);
    return this.line;
  }

  put(text, style) {
    if (this.again && this.line) { this.line.textContent = ''; this.size = 0; }
    this.again = false;
    for (let at = 0; at < text.length; at += LONG) {
      if (!this.line || this.size > LONG) this.begin();
      const piece = text.slice(at, at + LONG);
      this.size += piece.length;
      if (style) {
        const span = document.createElement('span');
        span.className = style;
        span.textContent = piece;
        this.line.append(span);
      } else this.line.append(piece);
    }
  }
}
