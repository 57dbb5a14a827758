/* A pass: element-wise ops over as many elements, in one launch. Every operand is read once and
 * every result written once, in 16 bits or as floats; what is made in between stays in registers.
 * Operands may be broadcast, slices, or pictures of another size, and results columns of something
 * wider: so concatenation, pooling and up-sampling are passes too.
 *
 * Threads have eight elements each. The ops are a short list of steps that all threads go through
 * together: what they wait for is memory, not the steps. Passes that follow one another become one
 * (pass_fuse.cu). */
#ifndef N2_CUDA_PASS_H
#define N2_CUDA_PASS_H

#include "wide.h"

enum {
    PASS_INPUTS = 6,  /* in[0 .. 3], gate, addend of the job */
    PASS_OUTPUTS = 4, /* out, more[0 .. 2] */
    PASS_STEPS = 16,
    PASS_SLOTS = 8, /* numbers that a thread has of each of its elements: inputs come first */
    PASS_THREADS = 256
};

/* How an operand is read: beside the output; or, where its axes lead, by eight consecutive numbers,
 * by one for all eight, or by one for each. */
typedef enum pass_way { PASS_ALONG, PASS_EIGHT, PASS_ONE, PASS_EACH } pass_way;

/* An operand's axes, innermost first, with its steps along them. */
typedef struct pass_axes {
    int32_t rank;
    job_divisor length[N2_MAX_RANK];
    uint32_t step[N2_MAX_RANK];
} pass_axes;

typedef struct pass_input {
    uint8_t type, way; /* n2_dtype, pass_way */
    pass_axes axes;    /* unless PASS_ALONG */
    span memory;       /* that it is read from */
} pass_input;

typedef struct pass_output {
    uint8_t type, slot;
    uint8_t pitched; /* rows of `width` elements are `pitch` apart */
    job_divisor width;
    uint32_t pitch;
    span memory;
} pass_output;

typedef struct pass_step {
    uint8_t a, b, to; /* slots */
    uint8_t op;       /* n2_op_id; of ops that only copy: what is in a */
    float f[2];       /* attr->a and attr->b */
} pass_step;

/* What job.wide.about is. */
typedef struct wide_pass {
    uint32_t n;
    uint8_t n_inputs, n_outputs, n_steps;
    uint8_t n_slots;
    uint8_t whole; /* eight elements are there and lie on end everywhere, except PASS_EACH */
    pass_input input[PASS_INPUTS];
    pass_output output[PASS_OUTPUTS];
    pass_step step[PASS_STEPS];
} wide_pass;

/* The fields of the job that have a pass's addresses. */
const void *n2_pass_input_at(const job *j, int k);
void *n2_pass_output_at(const job *j, int k);
void n2_pass_set_input(job *j, int k, const void *at);
void n2_pass_set_output(job *j, int k, void *at);

/* Whether eight elements of all operands and results can be taken at once. */
bool n2_pass_is_whole(const wide_pass *p, const job *j);

/* Whether a call is to be a pass: of a unary or binary op, of broadcast, slice and concat. */
bool n2_pass_takes(const n2_call *c);
/* Notes one; casts, pool2 and upsample2 too. */
void n2_note_pass(const n2_call *c);

/* A copy of input k in floats, scratch memory; NULL after a failure. For jobs that cannot read 16
 * bits. */
float *n2_pass_widened(const n2_call *c, int k);

/* Passes that read what others make become one with them. */
void n2_pass_fuse(n2_queue *q);

void n2_pass_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early);

#endif
