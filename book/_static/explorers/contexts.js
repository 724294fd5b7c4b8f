/* The race of pathways that serve one context, several, or all. Twins: lib.relu.contexts (item_modes, race_of_all_sets, residual_speed,
   vector_race_loss), lib.data.tasks.tree. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), C = (E.contexts = {});
  const STEP = 0.004, ITEMS = 8;
  /* Item modes of the tree over eight items: everything below the root, halves, quarters and leaves. */
  C.SIGMA = [Math.sqrt(7), Math.sqrt(3), 1];
  C.TIMES = [1, 2, 4]; // how often each of them occurs

  C.binomial = function (n, k) {
    if (k < 0 || k > n) return 0;
    let value = 1;
    for (let i = 1; i <= k; i++) value = (value * (n - k + i)) / i;
    return Math.round(value);
  };

  /* Speed of a pathway open in `active` contexts once the common one has learned its part. Make Haste Slowly, Appendices F and G. */
  C.residualSpeed = (sigma, contexts, active) => (sigma * Math.sqrt((active * (contexts - active)) / contexts)) / (ITEMS * contexts);

  /* Gradient descent of a pathway for every non-empty set of contexts, three numbers for each size by symmetry: what drives the common
     block, each own block, each other block. `a0[k - 1]` is the start of pathways that serve k contexts. Calls `watch(step, lengths, loss)`
     with lengths (modes, sizes) before every step and after the last one; a watch that returns false ends the race. */
  C.race = function (steps, contexts, a0, watch) {
    const sizes = E.range(contexts).map((i) => i + 1);
    const holding = sizes.map((k) => C.binomial(contexts - 1, k - 1)), both = sizes.map((k) => C.binomial(contexts - 2, k - 2));
    const n = C.SIGMA.length * contexts, [into, common, own, other] = [0, 1, 2, 3].map(() => new Float64Array(n)); // (modes, sizes)
    for (let i = 0; i < n; i++) {
      const k = sizes[i % contexts], start = Math.sqrt(a0[k - 1]);
      into[i] = start; // along the first gradient, k for the common block and 1 for each own one
      common[i] = (start * k) / Math.sqrt(k * k + k);
      own[i] = start / Math.sqrt(k * k + k);
    }
    const lengths = () => C.SIGMA.map((_, mode) => sizes.map((k, at) => {
      const i = mode * contexts + at;
      return into[i] * Math.sqrt(common[i] ** 2 + k * own[i] ** 2 + (contexts - k) * other[i] ** 2);
    }));
    const rest = new Float64Array(3 * C.SIGMA.length); // what is left to learn of a mode: common block, own block, each other block
    for (let step = 0; step <= steps; step++) {
      let loss = 0;
      for (let mode = 0; mode < C.SIGMA.length; mode++) {
        let r0 = C.SIGMA[mode], r1 = C.SIGMA[mode], r2 = 0;
        for (let at = 0; at < contexts; at++) {
          const i = mode * contexts + at;
          r0 -= holding[at] * into[i] * common[i];
          r1 -= holding[at] * into[i] * own[i];
          r2 -= into[i] * (both[at] * own[i] + (holding[at] - both[at]) * other[i]);
        }
        loss += 0.5 * contexts * C.TIMES[mode] * (r0 * r0 + r1 * r1 + (contexts - 1) * r2 * r2);
        rest.set([r0, r1, r2], 3 * mode);
      }
      if (watch(step, lengths, loss) === false || step === steps) return;
      for (let i = 0; i < n; i++) {
        const mode = (i / contexts) | 0, k = sizes[i % contexts], now = into[i];
        const c = k * rest[3 * mode], o = rest[3 * mode + 1] + (k - 1) * rest[3 * mode + 2], e = k * rest[3 * mode + 2];
        into[i] += STEP * (common[i] * c + k * own[i] * o + (contexts - k) * other[i] * e);
        common[i] += STEP * now * c;
        own[i] += STEP * now * o;
        other[i] += STEP * now * e;
      }
    }
  };

  C.starts = (contexts, a0, head) => E.range(contexts).map((i) => (i === 0 ? a0 * head : a0));

  C.compute = function ({ contexts, a0, head, steps }) {
    let result = null;
    C.race(steps, contexts, C.starts(contexts, a0, head), (step, lengths, loss) => {
      if (step === steps) result = { lengths: lengths(), loss };
    });
    return { ...result, speeds: E.range(contexts - 1).map((i) => C.residualSpeed(C.SIGMA[0], contexts, i + 1)) };
  };

  /* ---- on the page ---- */

  C.start = (models) => C.update(models);

  C.update = function (models) {
    const contexts = models.contexts.value, a0 = 10 ** models.start.value, head = 10 ** models.head.value;
    const curves = { t: [], loss: [], size1: [], size2: [], size3: [], size4: [], size5: [], size6: [] }, every = 5;
    let first = 0;
    C.race(3000, contexts, C.starts(contexts, a0, head), (step, lengths, loss) => {
      if (step === 0) first = loss;
      if (step % every) return true;
      const now = lengths();
      curves.t.push(step * STEP * 1000);
      curves.loss.push(loss);
      for (let k = 1; k <= 6; k++)
        curves[`size${k}`].push(k <= contexts ? Math.sqrt(E.sum(now.map((mode, i) => C.TIMES[i] * mode[k - 1] ** 2))) : NaN);
      return loss > 0.003 * first;
    });
    models.curves.data = curves;
    const end = curves.t[curves.t.length - 1], last = E.range(contexts).map((i) => curves[`size${i + 1}`][curves.t.length - 1]);
    for (const range of ["time-left", "time-right"]) models[range].setv({ start: 0, end });
    models.losses.setv({ start: 0, end: 1.05 * first });
    const top = 1.08 * Math.max(...E.range(contexts).map((i) => Math.max(...curves[`size${i + 1}`])));
    models.height.setv({ start: 0, end: top });
    const shade = (k) => (k === contexts ? "linear" : k === contexts - 1 ? "gated" : k === 1 ? "tanh" : "untrained");
    for (let k = 1; k <= 6; k++) {
      models[`line${k}`].visible = k <= contexts;
      models[`line${k}`].glyph.line_color = E.colour(shade(k));
    }
    const names = E.range(contexts).map((i) => (i + 1 === contexts ? "all" : `${i + 1}`));
    models.sets.factors = names;
    models.bars.data = { size: names, length: last, colour: names.map((_, i) => E.colour(shade(i + 1))) };
    /* The common phase is over when the common pathway is at its largest. */
    const common = curves[`size${contexts}`], peak = common.indexOf(Math.max(...common));
    const ahead = curves[`size${contexts - 1}`][peak] / curves.size1[peak], wins = last[contexts - 2] > last[0];
    const speed = C.residualSpeed(C.SIGMA[0], contexts, 1).toFixed(3);
    E.say("contexts", contexts === 2 ? "With two contexts, all but one is one: there is nothing to race for. The common pathway learns first, the two others what is left." :
      `After the common phase, pathways open in one context and in all but one learn at the same speed (s = ${speed}). But then the second kind is ` +
      `${ahead >= 1 ? `${E.number(ahead)} times as strong` : `${E.number(1 / ahead)} times weaker`}, and ${wins ? "it wins" : "the single ones win"}: ${last[contexts - 2].toFixed(2)} against ${last[0].toFixed(2)}.`);
  };
})(globalThis);
