/* What the explorers' numerics share: random numbers that a seed fixes, and products of matrices.
   Twins: tests/ext/explorer_twins.py (generator), lib/linear/draws.py (orthogonal), torch (products).
   Classic scripts, so that they load from the file system; under node they fill globalThis.Explorers all the same.
   Matrices are Float64Array, row after row. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {});

  /* A counter that grows by an odd constant, hashed to 32 bits. `uniform()` is in [0, 1), `normal()` standard normal. */
  E.generator = function (seed) {
    let counter = seed >>> 0;
    let spare = null;
    function uniform() {
      counter = (counter + 0x6d2b79f5) >>> 0;
      let h = Math.imul(counter ^ (counter >>> 15), counter | 1);
      h ^= h + Math.imul(h ^ (h >>> 7), h | 61);
      return ((h ^ (h >>> 14)) >>> 0) / 4294967296;
    }
    function normal() {
      if (spare !== null) {
        const kept = spare;
        spare = null;
        return kept;
      }
      const radius = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
      spare = radius * Math.sin(angle);
      return radius * Math.cos(angle);
    }
    const many = (draw) => (count) => Float64Array.from({ length: count }, draw);
    return { uniform, normal, uniforms: many(uniform), normals: many(normal) };
  };

  /* a (rows, inner) times b (inner, columns); with `aT` a is stored (inner, rows), with `bT` b is stored (columns, inner). */
  E.product = function (a, b, rows, inner, columns, { aT = false, bT = false, out = null } = {}) {
    const c = out || new Float64Array(rows * columns);
    if (bT) {
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          if (aT) for (let k = 0; k < inner; k++) sum += a[k * rows + i] * b[j * inner + k];
          else for (let k = 0; k < inner; k++) sum += a[i * inner + k] * b[j * inner + k];
          c[i * columns + j] = sum;
        }
      return c;
    }
    c.fill(0);
    for (let i = 0; i < rows; i++)
      for (let k = 0; k < inner; k++) {
        const factor = aT ? a[k * rows + i] : a[i * inner + k];
        if (factor === 0) continue;
        const from = k * columns, to = i * columns;
        for (let j = 0; j < columns; j++) c[to + j] += factor * b[from + j];
      }
    return c;
  };

  E.transposed = function (a, rows, columns) {
    const b = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) b[j * rows + i] = a[i * columns + j];
    return b;
  };

  /* Normal numbers (rows, columns) as a matrix with all singular values equal to `scale`: lib.linear.random_matrix, "orthogonal".
     Gram and Schmidt, twice, make the columns (of the matrix, or of its transpose if it is wide) orthonormal. */
  E.orthogonal = function (normal, rows, columns, scale) {
    if (rows < columns) return E.transposed(E.orthogonal(E.transposed(normal, rows, columns), columns, rows, scale), columns, rows);
    const q = Float64Array.from(normal);
    for (let j = 0; j < columns; j++) {
      for (let again = 0; again < 2; again++)
        for (let k = 0; k < j; k++) {
          let dot = 0;
          for (let i = 0; i < rows; i++) dot += q[i * columns + k] * q[i * columns + j];
          for (let i = 0; i < rows; i++) q[i * columns + j] -= dot * q[i * columns + k];
        }
      let length = 0;
      for (let i = 0; i < rows; i++) length += q[i * columns + j] ** 2;
      length = Math.sqrt(length);
      for (let i = 0; i < rows; i++) q[i * columns + j] /= length;
    }
    return q.map((value) => scale * value);
  };

  /* Where a curve y(t) first falls to (or, `rising`, climbs to) a level, between its points: lib.linear.crossing. */
  E.crossing = function (t, y, level, rising = false) {
    const there = (value) => (rising ? value >= level : value <= level);
    if (there(y[0])) return t[0];
    for (let i = 1; i < y.length; i++)
      if (there(y[i])) return t[i - 1] + ((level - y[i - 1]) / (y[i] - y[i - 1])) * (t[i] - t[i - 1]);
    return NaN;
  };

  /* 0.00016 as 1.6·10⁻⁴. */
  E.scientific = function (value) {
    const [digits, power] = value.toExponential(1).split("e");
    const raised = [...power.replace("+", "")].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻").join("");
    return `${digits.replace(".0", "")}·10${raised}`;
  };

  /* A number with two digits that count, written out. */
  E.number = (value) => Number(value.toPrecision(2)).toLocaleString("en");

  E.range = (count, from = 0, to = count - 1) => Array.from({ length: count }, (_, i) => (count > 1 ? from + ((to - from) * i) / (count - 1) : from));
  E.sum = (values) => values.reduce((total, value) => total + value, 0);
})(globalThis);
