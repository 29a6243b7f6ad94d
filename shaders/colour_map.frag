#version 330 core
// Values to colours. The interpolation is done on values, not on colours, so that a smooth map has only colours that its
// colour bar has.
in vec2 position01;
out vec4 colour;

uniform sampler2D values;       // R32F, one texel a cell, first row at the bottom of the texture
uniform sampler2D colour_table; // RGBA8, 256 x 1
uniform float low;
uniform float high;
uniform bool logarithmic;
uniform int interpolation;  // as engine/figures/figure.h: 0 nearest, 1 bilinear, 2 bicubic
uniform bool growing;       // the opacity grows with the value, from 0
uniform bool diverging;     // zero lies in the middle of the scale
uniform vec2 hatching;      // greys of a masked cell: ground and stripe
uniform bool blank;         // a cell without a value shows what lies below

float cell(ivec2 at, ivec2 size) {
  return texelFetch(values, clamp(at, ivec2(0), size - 1), 0).r;
}

float bilinear(ivec2 corner, vec2 part, ivec2 size) {
  float lower = mix(cell(corner, size), cell(corner + ivec2(1, 0), size), part.x);
  float upper = mix(cell(corner + ivec2(0, 1), size), cell(corner + ivec2(1, 1), size), part.x);
  return mix(lower, upper, part.y);
}

// Weights of the four cells around a point that lies `part` of the way from the second to the third: Catmull-Rom
// splines, which go through every cell's value.
vec4 catmull_rom(float part) {
  float square = part * part;
  float cube = square * part;
  return vec4(-0.5 * part + square - 0.5 * cube, 1.0 - 2.5 * square + 1.5 * cube,
              0.5 * part + 2.0 * square - 1.5 * cube, -0.5 * square + 0.5 * cube);
}

float bicubic(ivec2 corner, vec2 part, ivec2 size) {
  vec4 across = catmull_rom(part.x);
  vec4 along = catmull_rom(part.y);
  float sum = 0.0;
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 4; ++column) {
      sum += along[row] * across[column] * cell(corner + ivec2(column - 1, row - 1), size);
    }
  }
  // Beside a masked cell fewer neighbours have to do, so that it makes no larger hole than itself.
  return isnan(sum) ? bilinear(corner, part, size) : sum;
}

float value_at(vec2 where, ivec2 size) {
  vec2 at = where * vec2(size);
  if (interpolation == 0) return cell(ivec2(floor(at)), size);
  vec2 base = floor(at - 0.5);
  vec2 part = at - 0.5 - base;
  return interpolation == 2 ? bicubic(ivec2(base), part, size) : bilinear(ivec2(base), part, size);
}

void main() {
  ivec2 size = textureSize(values, 0);
  float value = value_at(position01, size);
  if (isnan(value)) { // masked: hatched, never zero-coloured
    float stripe = mod(gl_FragCoord.x + gl_FragCoord.y, 6.0) < 2.0 ? hatching.y : hatching.x;
    colour = vec4(vec3(stripe), blank ? 0.0 : 1.0);
    return;
  }
  float share;
  if (high <= low) {
    share = value >= high && high > 0.0 ? 1.0 : 0.0;
  } else if (logarithmic) {
    share = value <= 0.0 || low <= 0.0 ? 0.0 : (log(value) - log(low)) / (log(high) - log(low));
  } else {
    share = (value - low) / (high - low);
  }
  share = clamp(share, 0.0, 1.0);
  float opacity = !growing ? 1.0 : sqrt(diverging ? abs(2.0 * share - 1.0) : share); // as growing_opacity()
  colour = vec4(texelFetch(colour_table, ivec2(int(share * 255.0 + 0.5), 0), 0).rgb, opacity);
}
