/* Modes of deep linear networks. Twins: lib.linear.mode_strength, deep_mode_velocity, deep_mode_strength, loss_of_modes. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), M = (E.modes = {});
  const GRID = 20001, TOP = 18; // as in lib.linear.deep_mode_strength

  /* tau da/dt = N a^(2 - 2/N) (s - a d): a balanced mode spread over N matrices. */
  M.velocity = (a, s, d, layers) => layers * Math.pow(a, 2 - 2 / layers) * (s - a * d);

  /* A sigmoid for two layers: Neural Race Eq. 21, Make Haste Slowly Eq. 7. */
  M.strength = (t, s, d, a0) => s / d / (1 - (1 - s / (d * a0)) * Math.exp(-2 * s * t));

  /* Times at which the strengths of a grid, even in the logit of a d/s, are reached: {a, hit}. */
  M.timetable = function (s, d, a0, layers) {
    const share = (a0 * d) / s, start = Math.log(share / (1 - share)), width = (TOP - start) / (GRID - 1);
    const a = new Float64Array(GRID), hit = new Float64Array(GRID);
    let before = 0;
    for (let i = 0; i < GRID; i++) {
      const logit = start + i * width;
      a[i] = s / d / (1 + Math.exp(-logit));
      const slope = a[i] / (1 + Math.exp(logit)) / M.velocity(a[i], s, d, layers);
      if (i) hit[i] = hit[i - 1] + ((before + slope) * width) / 2;
      before = slope;
    }
    return { a, hit };
  };

  /* Strengths of a mode of `layers` matrices at times in ascending order. */
  M.deepStrength = function (times, s, d, a0, layers, table = M.timetable(s, d, a0, layers)) {
    const { a, hit } = table;
    let i = 1;
    return times.map((t) => {
      while (i < GRID - 1 && hit[i] < t) i++;
      const share = Math.min(1, Math.max(0, (t - hit[i - 1]) / (hit[i] - hit[i - 1])));
      return a[i - 1] + share * (a[i] - a[i - 1]);
    });
  };

  /* Half the mean squared error: power/2 - Σ (s a - d a²/2), where power is what the modes can explain, Σ s²/d. */
  M.loss = function (strengths, s, d) {
    const power = E.sum(s.map((one) => (one * one) / d));
    return strengths[0].map((_, i) => power / 2 - E.sum(s.map((one, k) => one * strengths[k][i] - (d * strengths[k][i] ** 2) / 2)));
  };

  /* Everything at once, for the test and for the picture: strengths (modes, times) and the loss (times). */
  M.compute = function ({ s, a0, layers, times }) {
    const strengths = s.map((one) => (layers === 2 ? times.map((t) => M.strength(t, one, 1, a0)) : M.deepStrength(times, one, 1, a0, layers)));
    return { strengths, loss: M.loss(strengths, s, 1) };
  };

  /* ---- on the page ---- */

  M.start = (models) => M.update(models);

  M.update = function (models) {
    const s = [1, 2, 3].map((k) => models[`s${k}`].value), a0 = 10 ** models.start.value, layers = models.layers.value;
    const tables = s.map((one) => M.timetable(one, 1, a0, layers));
    const at = (k, share) => E.crossing(tables[k].hit, tables[k].a, share * s[k], true);
    const end = 1.08 * Math.max(...s.map((_, k) => at(k, 0.985)));
    const times = E.range(321, 0, end), strengths = s.map((one, k) => M.deepStrength(times, one, 1, a0, layers, tables[k]));
    const loss = M.loss(strengths, s, 1);
    models.curves.data = { t: times, a1: strengths[0], a2: strengths[1], a3: strengths[2], loss };
    const half = s.map((_, k) => at(k, 0.5));
    models.halves.data = { t: half, a: s.map((one) => one / 2) };
    for (const range of ["time-left", "time-right"]) models[range].setv({ start: 0, end });
    models.height.setv({ start: 0, end: 1.08 * Math.max(...s) });
    models.losses.setv({ start: 0, end: 1.06 * loss[0] });
    const words = half.map((t) => t.toPrecision(3)), gap = Math.max(...half) / Math.min(...half);
    E.say("modes", `${layers === 1 ? "One matrix" : `${layers} matrices`}: the modes are half learned after ${words[0]}, ${words[1]} and ${words[2]} time constants, ` +
      `the last ${gap.toPrecision(2)} times as late as the first` + (layers === 1 ? ", and none of them waits." : "."));
  };
})(globalThis);
