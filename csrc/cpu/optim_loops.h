/* optim_loops: the steps of torch.optim's SGD, Adam (Kingma, Ba 2015; decoupled: Loshchilov, Hutter 2019; the largest
 * square: Reddi, Kale, Kumar 2018), RMSprop (Hinton 2012) and Adagrad (Duchi, Hazan, Singer 2011), included once per
 * dtype (T, NAME, SQRT) by optim_isa.c, which cuts tensors into parts. Here: elements `from` to `to` of one, as Adam does:
 *
 *   grad    g --+--> mean   m += take1 (g - m) -----------+          plain loops over neighbours, which compilers turn
 *               |                                         |          into vectors: m, v and p are in registers from their
 *               +--> square v = keep2 v + take2 g g --+   |          one load to their one store; what differs between
 *                                                     |   |          variants is a constant in each of them
 *   param   p -----------> p + rate (m / (sqrt(v) / root + eps)) */

/* hyper: lr, momentum, dampening, weight_decay, nesterov, maximize. */
static void NR_JOIN2(sgd, NAME)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to) {
    const double *hyper = plan->hyper;
    T *restrict param = item->param, *restrict momentum = item->first;
    const T *restrict grad = item->grad;
    const T rate = (T)-hyper[0], keep = (T)hyper[1], take = (T)(1.0 - hyper[2]), decay = (T)hyper[3];
    const T sign = hyper[5] != 0 ? (T)-1 : (T)1;
    if (!momentum) {
        for (int64_t i = from; i < to; i++)
            param[i] += rate * (sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0));
    } else if (plan->fresh) { /* the first buffer is the gradient itself, undamped */
        const T ahead = hyper[4] != 0 ? keep : (T)0;
        for (int64_t i = from; i < to; i++) {
            T g = sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0);
            momentum[i] = g;
            param[i] += rate * (g + ahead * g);
        }
    } else if (hyper[4] != 0) {
        for (int64_t i = from; i < to; i++) {
            T g = sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0), m = keep * momentum[i] + take * g;
            momentum[i] = m;
            param[i] += rate * (g + keep * m);
        }
    } else {
        for (int64_t i = from; i < to; i++) {
            T m = keep * momentum[i] + take * (sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0));
            momentum[i] = m;
            param[i] += rate * m;
        }
    }
}

/* hyper: lr, beta1, beta2, eps, weight_decay, decoupled, maximize, step (1 for the first). */
INLINE void NR_JOIN2(adam_of, NAME)(const double *hyper, const nr_optim_item *item, int64_t from, int64_t to,
                                    const bool amsgrad) {
    T *restrict param = item->param, *restrict mean = item->first, *restrict square = item->second;
    T *restrict largest = item->third;
    const T *restrict grad = item->grad;
    const bool decoupled = hyper[5] != 0;
    const T rate = (T)(-hyper[0] / (1.0 - pow(hyper[1], hyper[7])));
    const T root = (T)sqrt(1.0 - pow(hyper[2], hyper[7]));
    const T take1 = (T)(1.0 - hyper[1]), keep2 = (T)hyper[2], take2 = (T)(1.0 - hyper[2]), eps = (T)hyper[3];
    const T decay = decoupled ? (T)0 : (T)hyper[4];
    const T shrink = decoupled ? (T)(1.0 - hyper[0] * hyper[4]) : (T)1;
    const T sign = hyper[6] != 0 ? (T)-1 : (T)1;
    for (int64_t i = from; i < to; i++) {
        T p = param[i] * shrink, g = sign * grad[i] + (decay != 0 ? decay * p : (T)0); /* no 0 * infinity */
        T m = mean[i] + take1 * (g - mean[i]);
        T v = keep2 * square[i] + take2 * (g * g);
        mean[i] = m;
        square[i] = v;
        if (amsgrad) largest[i] = v = largest[i] >= v || largest[i] != largest[i] ? largest[i] : v;
        param[i] = p + rate * (m / (SQRT(v) / root + eps));
    }
}

static void NR_JOIN2(adam, NAME)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to) {
    if (item->third)
        NR_JOIN2(adam_of, NAME)(plan->hyper, item, from, to, true);
    else
        NR_JOIN2(adam_of, NAME)(plan->hyper, item, from, to, false);
}

/* hyper: lr, alpha, eps, weight_decay, momentum, maximize. */
INLINE void NR_JOIN2(rmsprop_of, NAME)(const double *hyper, const nr_optim_item *item, int64_t from, int64_t to,
                                       const bool centered, const bool has_momentum) {
    T *restrict param = item->param, *restrict square = item->first, *restrict mean = item->second;
    T *restrict momentum = item->third;
    const T *restrict grad = item->grad;
    const T rate = (T)-hyper[0], keep = (T)hyper[1], take = (T)(1.0 - hyper[1]), eps = (T)hyper[2];
    const T decay = (T)hyper[3], carry = (T)hyper[4], sign = hyper[5] != 0 ? (T)-1 : (T)1;
    for (int64_t i = from; i < to; i++) {
        T g = sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0);
        T v = keep * square[i] + take * (g * g);
        square[i] = v;
        if (centered) {
            T m = mean[i] + take * (g - mean[i]);
            mean[i] = m;
            v -= m * m;
        }
        T move = g / (SQRT(v) + eps);
        if (has_momentum) momentum[i] = move = carry * momentum[i] + move;
        param[i] += rate * move;
    }
}

static void NR_JOIN2(rmsprop, NAME)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to) {
    if (item->second && item->third)
        NR_JOIN2(rmsprop_of, NAME)(plan->hyper, item, from, to, true, true);
    else if (item->second)
        NR_JOIN2(rmsprop_of, NAME)(plan->hyper, item, from, to, true, false);
    else if (item->third)
        NR_JOIN2(rmsprop_of, NAME)(plan->hyper, item, from, to, false, true);
    else
        NR_JOIN2(rmsprop_of, NAME)(plan->hyper, item, from, to, false, false);
}

/* hyper: lr, lr_decay, eps, weight_decay, maximize, step (1 for the first). */
static void NR_JOIN2(adagrad, NAME)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to) {
    const double *hyper = plan->hyper;
    T *restrict param = item->param, *restrict sum = item->first;
    const T *restrict grad = item->grad;
    const T rate = (T)(-hyper[0] / (1.0 + (hyper[5] - 1.0) * hyper[1])), eps = (T)hyper[2], decay = (T)hyper[3];
    const T sign = hyper[4] != 0 ? (T)-1 : (T)1;
    for (int64_t i = from; i < to; i++) {
        T g = sign * grad[i] + (decay != 0 ? decay * param[i] : (T)0), s = sum[i] + g * g;
        sum[i] = s;
        param[i] += rate * (g / (SQRT(s) + eps));
    }
}
#undef T
#undef NAME
#undef SQRT
