/* How near samples come to the pictures while something is trained: the Frechet distance, by
 * features of a network or of layout and texture. */
#ifndef N2_DISTANCE_WATCH_H
#define N2_DISTANCE_WATCH_H

#include "image/image.h"
#include "metric/feature_net.h"
#include "metric/set_distance.h"

typedef struct n2_distance_watch n2_distance_watch;

/* features: the file of a network (feature_net.h), NULL: layout and texture. Fails as those do. */
n2ce_status n2_distance_watch_open(n2ce_ctx *ctx, const char *features, const n2_images *real,
                                   n2_device_choice *choice, n2_distance_watch **out);
void n2_distance_watch_close(n2_distance_watch *w); /* NULL is fine */

/* The Frechet distance of a set from the real pictures. */
n2ce_status n2_watch_distance(n2_distance_watch *w, const n2_images *made, double *out);

/* The same with KID, precision, recall (3 neighbours), and the class score: NaN without classes. */
n2ce_status n2_watch_all(n2_distance_watch *w, const n2_images *made, n2_set_distance *out,
                         double *classes);

size_t n2_watch_features(const n2_distance_watch *w);

#endif
